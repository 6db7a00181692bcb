"""A download as the training process waits for it: for hours while something arrives, not for a silent process."""

from types import SimpleNamespace

import pytest

from english import raises
from skep.core.errors import SwarmError
from skep.worker.swarm.state import coming, download
from skep.worker.swarm.state.coming import SILENCE_SECONDS, Coming
from skep.worker.swarm.state.download import COPY_BYTES_PER_SECOND, Arrived, Progress

A_LOOK = 10.0
"""Seconds that each look takes here."""
TOTAL = 10**9


class Later:
    """A future that has its result after `looks` looks; `meanwhile` is called at each of them."""

    def __init__(self, looks, meanwhile=lambda: None):
        self.left, self._meanwhile = looks, meanwhile

    def result(self, _seconds):
        if not self.left:
            return ARRIVED
        self.left -= 1
        self._meanwhile()
        raise TimeoutError


ARRIVED: Arrived = (7, [])


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=1000.0)
    for module in (coming, download):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def loading(future):
    """A download in `future`, and a list that grows when it is given up."""
    given_up = []
    return Coming(future, Progress(), TOTAL, lambda: given_up.append(True)), given_up


def test_a_state_may_take_hours_while_its_bytes_arrive(clock):
    def meanwhile():
        clock.now += A_LOOK
        begun.progress.note(begun.progress.received + TOTAL // 3000)

    begun, given_up = loading(Later(3000, meanwhile))
    told = []
    assert begun.wait(told.append) is ARRIVED
    assert clock.now > 8 * 3600
    assert not given_up
    assert len(told) == 3000
    assert told[1500].rate == pytest.approx(TOTAL // 3000 / A_LOOK)
    assert told[1500].left == pytest.approx(1500 * A_LOOK, rel=0.01)


def test_a_process_that_does_nothing_is_not_waited_for(clock):
    def meanwhile():
        clock.now += A_LOOK

    begun, given_up = loading(Later(10**6, meanwhile))
    since = clock.now
    with raises(SwarmError, match="sends its training state"):
        begun.wait()
    # a copy of the state, which tells nothing, is no silence
    longest = SILENCE_SECONDS + 4 * TOTAL / COPY_BYTES_PER_SECOND
    assert longest < clock.now - since <= longest + A_LOOK
    assert given_up == [True]


def test_an_error_in_the_training_process_gives_the_download_up():
    begun, given_up = loading(Later(1))

    def tell(_loading):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.wait(tell)
    assert given_up == [True]


def test_a_download_that_has_its_state_is_not_given_up():
    begun, given_up = loading(Later(0))
    assert begun.wait() is ARRIVED
    assert not given_up
