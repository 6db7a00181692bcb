"""How much one peer may store in another's part of the DHT."""

import pytest

from fakes import FakeClock
from skep.worker.connection.quotas import BYTES, BYTES_PER_SECOND, ENTRIES, ENTRIES_PER_SECOND, SENDERS, Quotas


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def made(clock):
    return Quotas(clock.monotonic)


def test_a_peer_stores_so_many_entries_at_once_and_more_as_time_passes(made, clock):
    assert made.take("a", ENTRIES, 0)
    assert not made.take("a", 1, 0)
    clock.advance(1.0)
    assert not made.take("a", int(ENTRIES_PER_SECOND) + 1, 0)
    assert made.take("a", int(ENTRIES_PER_SECOND), 0)
    assert not made.take("a", 1, 0)


def test_it_stores_so_many_bytes_at_once_and_more_as_time_passes(made, clock):
    assert not made.take("a", 1, BYTES + 1)
    assert made.take("a", 1, BYTES)
    assert not made.take("a", 1, 1)
    clock.advance(2.0)
    assert made.take("a", 1, 2 * BYTES_PER_SECOND)


def test_it_never_has_more_left_than_at_first(made, clock):
    assert made.take("a", 1, 1)
    clock.advance(1e6)
    assert not made.take("a", ENTRIES + 1, 0)
    assert made.take("a", ENTRIES, BYTES)


def test_peers_do_not_share_what_they_have_left(made):
    assert made.take("a", ENTRIES, BYTES)
    assert made.take("b", ENTRIES, BYTES)
    assert not made.take("a", 1, 1)


def test_only_so_many_peers_are_remembered(made):
    assert made.take("a", ENTRIES, 0)
    for number in range(SENDERS):
        assert made.take(number, 1, 1)
    assert made.take("a", ENTRIES, 0)
