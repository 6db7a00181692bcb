"""When the worker is started anew because p2pd does not come back to peers that answer."""

import pytest

from skep.worker.connection import reconnecting
from skep.worker.connection.reconnecting import LOOK_SECONDS, PATIENCE_SECONDS, Reconnecting, _places

SEED, PEER = "/ip4/10.0.0.1/tcp/4001/p2p/QmSeed", "/ip4/10.0.0.2/tcp/50123/p2p/QmPeer"


class Network:
    """Connections that the test decides, on a clock that only the pauses move."""

    def __init__(self):
        self.now = 0.0
        self.is_open, self.there, self.moved = True, True, False
        self.comes_back_after = float("inf")
        """Seconds of attempts to connect."""
        self.asked, self.connecting = [], None

    def seeds(self):
        return [SEED]

    def open(self):
        return [PEER] if self.is_open else []

    def from_lost_addresses(self):
        return self.moved

    def answering(self, addresses):
        self.asked.append(addresses)
        return self.there

    def connect(self, addresses):
        self.connecting = self.now if self.connecting is None else self.connecting
        self.is_open = self.now - self.connecting >= self.comes_back_after

    def pause(self, seconds):
        self.now += seconds


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def watched(network):
    return Reconnecting(network, lambda: network.now, network.pause)


def looked(watched, times=1):
    for _ in range(times):
        watched.look(60.0)
    return watched.ended


def test_while_somebody_is_connected_nobody_is_tried(watched, network):
    assert not looked(watched, 100)
    assert network.asked == []


def test_who_was_never_connected_is_not_started_again(watched, network):
    network.is_open = False
    assert not looked(watched, 100)
    assert network.asked == []


def test_without_a_network_it_waits(watched, network):
    looked(watched)
    network.is_open = network.there = False
    assert not looked(watched, 100)
    assert network.asked[0] == [SEED, PEER]


def test_no_look_lasts_as_long_as_the_watch_waits(watched, network):
    looked(watched)
    network.is_open = network.there = False
    looked(watched)
    assert network.now <= LOOK_SECONDS + 2


def test_a_p2pd_that_stays_away_from_peers_that_answer_is_given_up(watched, network):
    looked(watched)
    network.is_open = network.there = False
    looked(watched)
    network.there, back = True, network.now
    assert looked(watched)
    assert PATIENCE_SECONDS <= network.now - back <= PATIENCE_SECONDS + 4


def test_a_p2pd_that_comes_back_soon_is_left_alone(watched, network):
    looked(watched)
    network.is_open, network.comes_back_after = False, PATIENCE_SECONDS - 4
    assert not looked(watched, 100)
    assert network.is_open


def test_a_network_that_comes_and_goes_is_waited_for(watched, network):
    looked(watched)
    network.is_open = False

    def pause(seconds):
        network.now += seconds
        network.there = not network.there

    network.pause = watched._pause = pause
    assert not looked(watched, 100)


def test_connections_from_an_address_that_was_lost_are_given_up_at_once(watched, network):
    looked(watched)
    network.moved = True
    assert looked(watched)
    assert network.now == 0


def test_but_not_before_there_is_a_network_again(watched, network):
    looked(watched)
    network.moved, network.there = True, False
    assert not looked(watched, 100)
    network.there = True
    assert looked(watched)


def test_a_process_that_does_not_answer_is_not_its_affair(watched, network):
    looked(watched)

    def hangs():
        raise TimeoutError

    network.open = hangs
    assert not looked(watched, 100)


def test_places_are_those_that_can_be_dialled_directly():
    relayed = "/ip4/10.0.0.1/tcp/4001/p2p/QmSeed/p2p-circuit/p2p/QmPeer"
    assert _places([SEED, relayed, "/ip4/10.0.0.3/udp/1/quic/p2p/Qm"]) == [("10.0.0.1", 4001)]


def test_the_part_of_the_watch(monkeypatch, network):
    monkeypatch.setattr(reconnecting, "Connections", lambda dht: network)
    part = reconnecting.part(None)
    part.ask(60.0)
    assert not part.ended()
    network.moved = True
    part.ask(60.0)
    assert part.ended()
