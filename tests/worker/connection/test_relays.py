"""A relay is waited for only where one could be, and watched."""

from concurrent.futures import Future

import pytest

from manifests import PEER
from skep.worker.connection.relays import becomes_relayed, part

PEER_ID = PEER.rpartition("/")[2]


class Daemon:
    """A stand-in for the DHT: p2pd has the address of a relay from the `after`-th question on."""

    def __init__(self, after, *hosts):
        self.asked, self._after = 0, after
        self.initial_peers = [f"/{kind}/{host}/tcp/4001/p2p/{PEER_ID}" for kind, host in hosts]

    def run_coroutine(self, _coroutine, *, return_future):
        assert return_future
        self.asked += 1
        answer = Future()
        answer.set_result(self.asked >= self._after)
        return answer


PUBLIC, NAMED, NEAR = ("ip4", "8.8.8.8"), ("dns4", "seed.example.org"), ("ip4", "192.168.1.2")


@pytest.mark.parametrize("host", [PUBLIC, NAMED])
def test_a_relay_that_comes_is_waited_for(host):
    assert becomes_relayed(Daemon(3, NEAR, host))


def test_one_that_does_not_come_is_not_waited_for_long():
    daemon = Daemon(10**9, PUBLIC)
    assert not becomes_relayed(daemon, 0.2)
    assert daemon.asked > 1


def test_there_is_none_in_a_private_network():
    daemon = Daemon(2, NEAR)
    assert not becomes_relayed(daemon)
    assert daemon.asked == 1


def test_the_watch_hears_that_the_relay_is_gone():
    daemon = Daemon(2)
    watched = part(daemon)
    with pytest.raises(ConnectionError):
        watched.ask(1.0)
    watched.ask(1.0)
    assert not watched.ended()
