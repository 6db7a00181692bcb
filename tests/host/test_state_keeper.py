"""Which epoch the host's state keeper believes, and when it asks for a state."""

import math
import time
from types import SimpleNamespace

import pytest
from hivemind.optim.progress_tracker import LocalTrainingProgress
from hivemind.utils import ValueWithExpiration, get_dht_time

from english import raises
from skep.core.errors import SwarmError
from skep.host.server.state_keeper import PAUSE_SECONDS, StateKeeper, Swarm, SwarmRecords, believed

LIE = 10**9


class Slow:
    """Loads for a moment, however long it may take, and finds no donor."""

    def load_checked(self, known):
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
    assert believed(epochs, kept, possible=100) == believes


class Book:
    """A DHT with progress records only."""

    def __init__(self, epochs):
        self._records = {
            f"peer {number}".encode(): ValueWithExpiration(
                LocalTrainingProgress(
                    peer_id=b"p",
                    epoch=epoch,
                    samples_accumulated=0,
                    samples_per_second=1.0,
                    time=0.0,
                    client_mode=False,
                ).dict(),
                get_dht_time() + 30,
            )
            for number, epoch in enumerate(epochs)
        }

    def add_validators(self, _validators):
        pass

    def get(self, _key, **_options):
        found = ValueWithExpiration(self._records, get_dht_time() + 30)
        return SimpleNamespace(result=lambda _within: found)


def test_a_single_claim_does_not_make_the_keeper_wait_for_an_epoch_that_never_comes():
    records = SwarmRecords(Book([12, 12, LIE]), "run")
    assert records.look(10, math.inf) == Swarm(peers=3, epoch=12)


def test_many_false_claims_do_not_either_once_a_state_was_loaded_or_restored():
    records = SwarmRecords(Book([12, 12, *[LIE] * 50]), "run")
    assert records.look(10, math.inf) == Swarm(peers=52, epoch=LIE)
    assert records.look(10, 100) == Swarm(peers=52, epoch=12)
