"""How much one peer may store in another's part of the DHT, and ask of it."""

import pytest

from fakes import FakeClock
from skep.worker.connection.quotas import (
    ANSWERED,
    ANSWERED_PER_SECOND,
    BYTES,
    BYTES_PER_SECOND,
    ENTRIES,
    ENTRIES_PER_SECOND,
    MOST_ANSWERED,
    SENDERS,
    Answers,
    Quotas,
)


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


@pytest.fixture
def answers(clock):
    return Answers(clock.monotonic)


def ask(answers, asker, size):
    if may := answers.may_ask(asker):
        answers.count(asker, size)
    return may


def test_a_peer_is_answered_so_many_bytes_and_more_as_time_passes(answers, clock):
    assert ask(answers, "a", ANSWERED - 1)
    assert ask(answers, "a", ANSWERED_PER_SECOND + 1)  # known only when it is answered; what is too much is owed
    assert not ask(answers, "a", 1)
    assert ask(answers, "b", 1)
    clock.advance(0.9)
    assert not ask(answers, "a", 1)
    clock.advance(0.2)
    assert ask(answers, "a", 1)


def test_a_peer_that_asks_seldom_may_ask_for_more_at_once(answers, clock):
    assert ask(answers, "a", 1)
    clock.advance(1e6)
    assert ask(answers, "a", MOST_ANSWERED - 1)
    assert ask(answers, "a", 1)
    assert not ask(answers, "a", 1)


def test_of_those_that_ask_only_so_many_are_remembered(answers):
    assert ask(answers, "a", 2 * ANSWERED)
    assert not ask(answers, "a", 1)
    assert all(ask(answers, number, 1) for number in range(SENDERS))
    assert ask(answers, "a", 1)


def test_a_swarm_of_a_hundred_may_look_at_its_progress_twice_a_second_for_a_minute(answers, clock):
    for _ in range(120):
        assert ask(answers, "a", 100 * 1300)
        clock.advance(0.5)
