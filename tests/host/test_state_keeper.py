import time

from english import raises
from skep.core.errors import SwarmError
from skep.host.server.state_keeper import PAUSE_SECONDS, StateKeeper, Swarm


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
