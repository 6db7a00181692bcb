"""A seed whose processes grow: when it starts afresh, and what `skep host` does then. No peer runs here."""

import itertools
import queue

import pytest

from english import in_english
from fakes import StillClock
from skep.core.errors import SwarmError
from skep.core.policy.growth import MEASUREMENTS, Use
from skep.core.text import NOTHING, Text, from_data
from skep.host.server.hosting import RestartedPeer
from skep.host.server.renewal import (
    APART_SECONDS,
    CHECKPOINT_SECONDS,
    LONGEST_PAUSE,
    STEADY_SECONDS,
    Pauses,
    Renewal,
)
from terminals import wait_until

SECONDS = 60.0
"""On a busy computer."""
GB = 1_000_000_000
SMALL, LARGE = Use(GB, 50), Use(3 * GB, 50)
GROWN = [SMALL] * MEASUREMENTS + [LARGE] * MEASUREMENTS


@pytest.fixture
def clock():
    return StillClock(0.0)


@pytest.fixture
def renewal(clock):
    return Renewal(clock)


def grow(renewal):
    return [renewal.measured(use) for use in GROWN]


def test_growth_is_said_once_and_a_checkpoint_is_waited_for(renewal):
    assert grow(renewal) == [False] * (len(GROWN) - 1) + [True]
    assert not renewal.measured(LARGE)
    assert not renewal.begins(saved=False)
    assert renewal.begins(saved=True)
    assert not renewal.begins(saved=True)


def test_a_checkpoint_of_a_seed_that_has_not_grown_begins_nothing(renewal):
    assert not any(renewal.measured(SMALL) for _ in range(3 * MEASUREMENTS))
    assert not renewal.begins(saved=True)


def test_where_no_checkpoint_comes_it_begins_after_an_hour(renewal, clock):
    grow(renewal)
    clock.now += CHECKPOINT_SECONDS - 1
    assert not renewal.begins(saved=False)
    clock.now += 1
    assert renewal.begins(saved=False)


def test_what_an_earlier_process_used_does_not_count(renewal):
    assert not any(renewal.measured(use) for use in GROWN[:-1])
    renewal.started()
    assert not renewal.measured(LARGE)


def test_a_seed_is_renewed_once_an_hour_at_most(renewal, clock):
    grow(renewal)
    renewal.begins(saved=True)
    renewal.started()
    assert not any(grow(renewal))
    clock.now += APART_SECONDS
    assert renewal.measured(LARGE)


class Seed:
    """In place of the seed's process: it grows, and says what the test wants."""

    def __init__(self):
        self.starts, self._uses, self._said = 0, itertools.chain(GROWN, itertools.repeat(LARGE)), queue.Queue()

    def start(self):
        self.starts += 1
        return ["address"]

    def use(self):
        return next(self._uses)

    def say(self, line):
        self._said.put(line)

    def lines(self):
        return iter(self._said.get, None)

    def ask_to_end(self):
        self._said.put(None)

    def end(self):
        pass


def test_a_seed_that_has_grown_is_started_again_after_a_checkpoint_as_no_failure(clock):
    seed, told = Seed(), []
    peer = RestartedPeer(seed, told.append, Renewal(clock), measure_seconds=0.001)
    peer.start()
    try:
        wait_until(lambda: told, SECONDS)
        assert "have grown" in in_english(from_data(told[0]["title"]))
        assert seed.starts == 1
        seed.say({"event": "checkpoint"})
        wait_until(lambda: seed.starts == 2, SECONDS)
        assert len(told) == 2  # the growth, and the checkpoint
    finally:
        peer.end()


@pytest.fixture
def pauses(clock):
    return Pauses(clock, chance=lambda: 1.0)


def test_the_pauses_between_starts_grow_from_a_second_to_five_minutes(pauses):
    found = [pauses.next() for _ in range(2000)]
    assert found[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert set(found[9:]) == {LONGEST_PAUSE}


def test_a_seed_that_ran_for_a_while_is_started_again_at_once(pauses, clock):
    assert [pauses.next(), pauses.next(), pauses.next()] == [1, 2, 4]
    pauses.started()
    clock.now += STEADY_SECONDS - 1
    assert pauses.next() == 8
    clock.now += STEADY_SECONDS  # it did not run
    assert pauses.next() == 16
    pauses.started()
    clock.now += STEADY_SECONDS
    assert pauses.next() == 1


def test_many_seeds_are_not_started_at_the_same_moment(clock):
    found = [Pauses(clock).next() for _ in range(50)]
    assert len(set(found)) > 1
    assert all(0.5 <= each <= 1 for each in found)


class Failing(Seed):
    """Ends at once, and then does not start twice."""

    def start(self):
        super().start()
        if self.starts in {2, 3}:
            raise SwarmError(Text("peer_process.seed_peer_did_not_start"), NOTHING)
        self.say(None) if self.starts == 1 else None
        return ["address"]


def test_each_failed_start_is_told(clock):
    seed, told = Failing(), []
    pauses = Pauses(clock, chance=lambda: 1.0)
    pauses.next = lambda: 0.001
    peer = RestartedPeer(seed, told.append, Renewal(clock), pauses=pauses)
    peer.start()
    try:
        wait_until(lambda: seed.starts == 4, SECONDS)
    finally:
        peer.end()
    ended, *failed = (in_english(from_data(each["title"])) for each in told)
    assert ended == "The seed peer ended unexpectedly."
    assert failed == ["The seed peer did not start."] * 2
