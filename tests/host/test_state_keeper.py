"""Which epoch the host's state keeper believes, and when it asks for a state."""

import math
import time
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hivemind.optim.progress_tracker import LocalTrainingProgress
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time

from english import raises
from fakes import StillClock
from skep.core.errors import SwarmError
from skep.host.server.state_keeper import (
    LOOK_SECONDS,
    PAUSE_SECONDS,
    StateKeeper,
    Swarm,
    SwarmRecords,
    believed,
)
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.state.coming import Loading
from skep.worker.swarm.state.download import Progress

LIE = 10**9


class Slow:
    """Loads for a moment, however long it may take, and finds no donor."""

    def load_checked(self, known, _tell):
        self.known, begun = known, time.monotonic()
        while time.monotonic() < begun + 0.05:
            pass
        self.ended = time.monotonic()


def test_the_pause_between_two_downloads_counts_from_the_end_of_the_first():
    keeper = object.__new__(StateKeeper)
    keeper._averager = Slow()
    with raises(SwarmError, match="No peer of the swarm"):
        keeper._load(Swarm(peers=1, epoch=7))
    assert keeper._averager.known == 7
    assert keeper._not_before >= keeper._averager.ended + PAUSE_SECONDS


def test_a_state_that_is_no_newer_than_what_is_kept_is_no_checkpoint():
    keeper = object.__new__(StateKeeper)
    keeper._averager, keeper._kept = SimpleNamespace(load_checked=lambda _known, _tell: 0), 0
    keeper._load(Swarm(peers=1, epoch=1))  # it would report, and write, a checkpoint of epoch 0
    assert keeper._kept == 0


class Busy:
    """An averager whose donors are busy for an epoch after the other."""

    def __init__(self, later):
        self._later, self.loading = later, Progress()

    def load_checked(self, known, tell):
        for look in self._later:
            look()
            tell(Loading(0, 1))


def test_a_download_that_waits_for_busy_donors_learns_of_the_epochs_meanwhile(monkeypatch):
    keeper, clock, seen = object.__new__(StateKeeper), StillClock(100.0), []
    keeper._kept, keeper._experience = 4, Experience()

    def later(seconds, epoch):
        clock.now += seconds
        keeper._records = SwarmRecords(Book([(0, epoch)]), "run", LIE, Attending(0))
        seen.append(keeper._averager.loading.known)

    def silent():
        clock.now += LOOK_SECONDS
        keeper._records = SimpleNamespace(look=Mock(side_effect=TimeoutError))

    steps = [(1.0, 5), (LOOK_SECONDS, 6), (1.0, 7), (LOOK_SECONDS, 8), (1.0, 9)]
    keeper._averager = Busy([silent, *(partial(later, *each) for each in steps)])
    monkeypatch.setattr(time, "monotonic", clock)
    with raises(SwarmError, match="No peer of the swarm"):
        keeper._load(Swarm(peers=1, epoch=5))
    assert seen == [0, 0, 6, 6, 8]


@pytest.mark.parametrize(
    ("epochs", "kept", "believes"),
    [
        ([], 0, 0),
        ([], 7, 0),
        ([5], 0, 5),
        ([5, 5, 6], 0, 5),
        ([5, 6, 6], 5, 6),
        ([5, 5, 6], 5, 6),
        ([5, 5, 5], 5, 5),
        ([4, 5], 7, 5),
        ([5, 5, LIE], 4, 5),
        ([5, LIE], 4, 5),
        ([5, 5, 5, LIE, LIE], 4, 5),
        ([0, 0, 0, 5, 5], 4, 5),
        ([5, *[LIE] * 50], 4, 5),
        ([5, *[101] * 50], 4, 5),
        ([LIE] * 50, 4, 0),
        ([5, *[100] * 50], 4, 100),
    ],
)
def test_an_epoch_is_believed_if_half_of_those_beyond_ours_have_reached_it(epochs, kept, believes):
    assert believed([(epoch, 1.0) for epoch in epochs], kept, possible=100) == believes


def test_several_records_under_one_id_count_as_one():
    assert believed([(5, 1.0), (6, 1.0), (90, 0.5), (91, 0.5)], 4, possible=100) == 6


class Book:
    """A DHT with progress records only, of peers whose ids these are, or have these numbers."""

    def __init__(self, records):
        self._records = {
            f"key {number}".encode(): ValueWithExpiration(
                LocalTrainingProgress(
                    peer_id=peer if isinstance(peer, bytes) else bytes([peer]),
                    epoch=epoch,
                    samples_accumulated=0,
                    samples_per_second=1.0,
                    time=0.0,
                    client_mode=False,
                ).dict(),
                get_dht_time() + 30,
            )
            for number, (peer, epoch) in enumerate(records)
        }

    def add_validators(self, _validators):
        pass

    def get(self, _key, **_options):
        found = ValueWithExpiration(self._records, get_dht_time() + 30)
        return SimpleNamespace(result=lambda _within: found)


class Attending:
    """Only the peers with ids up to this number answer, once they were asked and waited for."""

    def __init__(self, last):
        self._there, self._asked = {str(PeerID(bytes([peer]))) for peer in range(last + 1)}, False

    def answers(self, peer):
        self._there.add(str(PeerID(peer)))

    def of(self, peers):
        return {peer: float(self._asked and peer in self._there) for peer in peers}

    def wait(self, _within):
        self._asked = True
        return True


def look(records, kept, possible=math.inf, *, there=200, last_epoch=LIE):
    return SwarmRecords(Book(records), "run", last_epoch, Attending(there)).look(kept, possible)


FALSE = [(peer, LIE) for peer in range(100, 150)]


def test_a_single_claim_does_not_make_the_keeper_wait_for_an_epoch_that_never_comes():
    assert look([(0, 12), (1, 12), (2, LIE)], 10) == Swarm(peers=3, epoch=12)


def test_many_false_claims_do_not_either_once_a_state_was_loaded_or_restored():
    assert look([(0, 12), (1, 12), *FALSE], 10) == Swarm(peers=52, epoch=LIE)
    assert look([(0, 12), (1, 12), *FALSE], 10, 100) == Swarm(peers=52, epoch=12)


def test_records_of_peers_that_do_not_answer_do_not_count():
    assert look([(0, 12), (1, 12), *FALSE], 10, there=1) == Swarm(peers=2, epoch=12)
    assert look(FALSE, 10, there=1) == Swarm()


def test_an_id_that_is_too_long_is_nobodys():
    attending, too_long = Attending(0), bytes(LONGEST_ID + 1)
    attending.answers(too_long)
    records = SwarmRecords(Book([(0, 12), (too_long, LIE)]), "run", LIE, attending)
    assert records.look(10, math.inf) == Swarm(peers=1, epoch=12)


def test_nor_do_further_ones_under_the_ids_of_peers_that_do():
    assert look([(0, 12), (1, 12), (0, LIE), (0, LIE), (1, 12)], 10) == Swarm(peers=2, epoch=12)


class Beacon:
    """Records of which only the keeper's own is of interest."""

    published = False

    def publish(self, _epoch):
        self.published = True

    def withdraw(self):
        self.published = False


@pytest.mark.parametrize(
    ("records", "possible", "published"),
    [
        ([], 100, True),
        ([(0, 12)], 100, False),
        ([(0, 12)], 11, False),  # it is faster than the keeper believes
        ([(0, 9)], 100, False),
        ([(0, 8)], 100, True),
    ],
)
def test_a_lone_trainer_is_not_counted_as_two_whatever_is_believed_of_it(records, possible, published):
    keeper = object.__new__(StateKeeper)
    keeper._records, keeper._kept = Beacon(), 10
    keeper._publish_epoch(look(records, 10, possible))
    assert keeper._records.published is published


def test_no_epoch_is_after_the_last_one_of_the_run():
    assert look(FALSE, 10, last_epoch=2000) == Swarm(peers=50, epoch=2000)
