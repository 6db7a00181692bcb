"""A seed whose processes grow: when it starts afresh, and what `skep host` does then. No peer runs here."""

import itertools
import queue

import pytest

from english import in_english
from fakes import StillClock
from skep.core.policy.growth import MEASUREMENTS, Use
from skep.core.text import from_data
from skep.host.server.hosting import RestartedPeer
from skep.host.server.renewal import APART_SECONDS, CHECKPOINT_SECONDS, Renewal
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
