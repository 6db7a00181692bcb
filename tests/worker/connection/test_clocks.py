"""The watch over this computer's clock, with differences that the test decides."""

import pytest

from english import in_english
from skep.worker.connection.clocks import ClockWatch


class Watched:
    def __init__(self):
        self.ahead, self.told = [], []
        self.watch = ClockWatch(lambda: self.ahead, self.told.append)

    def look(self, *ahead):
        """What the watch says when our clock is `ahead` of those of the peers that answer, by so many seconds."""
        self.ahead, self.told[:] = list(ahead), []
        self.watch.look()
        return [in_english(each.problem.title) for each in self.told]


@pytest.fixture
def watched():
    return Watched()


@pytest.mark.parametrize(("ahead", "said"), [(10.0, "10 s ahead of"), (-10.0, "10 s behind")])
def test_a_clock_that_is_off_is_told_once(watched, ahead, said):
    assert watched.look(ahead) == [f"This computer's clock is {said} other peers' clocks."]
    assert watched.look(ahead + 1) == []


def test_a_clock_that_agrees_again_is_told_once_with_what_is_over(watched):
    watched.look(10.0)
    (noticed,) = watched.told
    assert watched.look(0.2) == ["This computer's clock agrees with other peers' clocks again."]
    assert watched.told[0].over == noticed.problem
    assert watched.look(0.1) == []


def test_a_clock_at_the_limit_is_not_told_again_and_again(watched):
    watched.look(3.1)
    assert watched.look(2.9) == watched.look(3.1) == []


def test_a_single_peer_whose_clock_is_off_says_nothing_of_ours(watched):
    assert watched.look(-600.0, 0.1, -0.1) == []


def test_no_answer_is_no_agreement(watched):
    watched.look(10.0)
    assert watched.look() == []
    assert watched.look(0.0) != []
