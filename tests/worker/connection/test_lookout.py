"""The watch over this computer's connections, by a clock and connections that the test decides."""

import pytest

from skep.worker.connection.lookout import CONNECTED, CUT_OFF, CUT_OFF_SECONDS, LinkWatch


class Watched:
    def __init__(self):
        self.connected, self.now, self.told = 0, 0.0, []
        self.watch = LinkWatch(lambda: self.connected, self.told.append, lambda: self.now)

    def look(self, connected, after=0.0):
        """What is told when so many peers are connected."""
        self.connected, self.told[:] = connected, []
        self.now += after
        self.watch.look()
        return [(each.problem, each.over) for each in self.told]


@pytest.fixture
def watched():
    made = Watched()
    made.look(2)
    return made


def test_a_computer_that_is_cut_off_says_so_once_and_when_it_is_back(watched):
    assert watched.look(0, after=CUT_OFF_SECONDS - 1.0) == []
    assert watched.look(0, after=1.0) == [(CUT_OFF, None)]
    assert watched.look(0, after=600.0) == []
    assert watched.look(1) == [(CONNECTED, CUT_OFF)]
    assert watched.look(2) == []


def test_a_computer_that_is_back_soon_says_nothing(watched):
    for _ in range(5):
        assert watched.look(0, after=CUT_OFF_SECONDS - 1.0) == watched.look(1, after=1.0) == []


def test_the_first_peer_of_a_swarm_is_not_cut_off():
    alone = Watched()
    assert alone.look(0, after=1000.0) == []
