"""When a worker connects again by itself, and the detour to peers that p2pd would not dial."""

import asyncio
from types import SimpleNamespace

import psutil
import pytest

from skep.worker.connection import reconnecting
from skep.worker.connection.reconnecting import (
    AWAY_SECONDS,
    LOOK_SECONDS,
    MOST_TRIED,
    PAUSE_SECONDS,
    Connections,
    Reconnecting,
    _places,
    detour,
)

SEED, PEER = "/ip4/10.0.0.1/tcp/4001/p2p/QmSeed", "/ip4/10.0.0.2/tcp/50123/p2p/QmPeer"


class Fake:
    """Connections that the test decides."""

    def __init__(self):
        self.seeds = [SEED]
        self.found, self.there, self.moved = [SEED, PEER], True, False
        self.asked, self.closed, self.connected = [], [], []
        self.now = 0.0

    async def open(self):
        return self.found

    def from_lost_addresses(self):
        return self.moved

    async def answering(self, addresses):
        self.asked.append(addresses)
        return self.there

    async def close(self, addresses):
        self.closed.append(addresses)

    async def connect(self, addresses):
        self.connected.append(addresses)


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def look(fake):
    watched = Reconnecting(fake, lambda: fake.now)
    return lambda: asyncio.run(watched.look())


def test_while_somebody_is_connected_nobody_is_tried(look, fake):
    assert look() == LOOK_SECONDS
    assert (fake.asked, fake.connected) == ([], [])


def test_who_was_never_connected_is_left_alone(look, fake):
    fake.found = []
    assert look() == PAUSE_SECONDS
    assert (fake.asked, fake.connected) == ([], [])


def test_without_a_network_it_waits(look, fake):
    look()
    fake.found, fake.there = [], False
    assert look() == PAUSE_SECONDS
    assert fake.asked == [[SEED, PEER]]  # the seed once
    assert fake.connected == []


def test_when_the_network_is_back_those_of_before_are_connected(look, fake):
    look()
    fake.found = []
    assert look() == PAUSE_SECONDS
    assert fake.connected == [[SEED, PEER]]


def test_connections_from_an_address_that_was_lost_are_closed_first(look, fake):
    look()
    fake.moved = True
    look()
    assert fake.closed == [[SEED, PEER]]
    assert fake.connected == [[SEED, PEER]]


def test_but_not_before_there_is_a_network_again(look, fake):
    look()
    fake.moved, fake.there = True, False
    look()
    assert (fake.closed, fake.connected) == ([], [])


def test_after_that_those_that_are_still_away_are_tried_for_a_while(look, fake):
    look()
    fake.found = []
    look()
    fake.found = [SEED]
    assert look() == PAUSE_SECONDS
    assert fake.connected == [[SEED, PEER], [PEER]]
    fake.now = AWAY_SECONDS + 1
    assert look() == LOOK_SECONDS
    assert len(fake.connected) == 2


def test_who_leaves_while_others_stay_is_not_called_back(look, fake):
    look()
    fake.found = [SEED]
    assert look() == LOOK_SECONDS
    assert fake.connected == []


def test_few_peers_are_tried(look, fake):
    fake.found = [f"/ip4/10.0.1.{number}/tcp/1/p2p/Qm{number}" for number in range(50)]
    look()
    fake.found = []
    look()
    assert len(fake.asked[0]) == MOST_TRIED
    assert fake.asked[0][0] == SEED


def connection(ours, theirs="10.0.0.2", status=psutil.CONN_ESTABLISHED):
    there = SimpleNamespace(ip=theirs) if theirs else ()
    return SimpleNamespace(laddr=SimpleNamespace(ip=ours), raddr=there, status=status)


OURS = {"eth0": [SimpleNamespace(address="10.0.0.9"), SimpleNamespace(address="fe80::9%eth0")]}
LISTENING = connection("0.0.0.0", None, psutil.CONN_LISTEN)


@pytest.mark.parametrize(
    ("connections", "lost"),
    [
        ([], False),
        ([LISTENING], False),
        ([LISTENING, connection("10.0.0.8")], True),
        ([connection("10.0.0.8"), connection("10.0.0.9")], False),
        ([connection("::ffff:10.0.0.8", "::ffff:10.0.0.2")], True),
        ([connection("::ffff:10.0.0.9", "::ffff:10.0.0.2")], False),
        ([connection("fe80::9", "fe80::2")], False),
        # a peer on this computer is reached whatever its address is
        ([connection("127.0.0.1", "127.0.0.1")], False),
        ([connection("::1", "::1")], False),
        ([connection("127.0.0.1", "127.0.0.1"), connection("10.0.0.8")], True),
        ([connection("10.0.0.8", status=psutil.CONN_SYN_SENT)], False),
    ],
)
def test_all_connections_are_from_an_address_that_was_lost(monkeypatch, connections, lost):
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: OURS)
    monkeypatch.setattr(
        reconnecting, "p2pd_of", lambda dht: [SimpleNamespace(net_connections=lambda kind: connections)]
    )
    assert Connections(SimpleNamespace(initial_peers=None), None).from_lost_addresses() is lost


def test_a_system_that_does_not_tell_lost_no_address(monkeypatch):
    def refuse(kind):
        raise psutil.AccessDenied

    monkeypatch.setattr(reconnecting, "p2pd_of", lambda dht: [SimpleNamespace(net_connections=refuse)])
    assert not Connections(SimpleNamespace(initial_peers=None), None).from_lost_addresses()


def test_places_are_those_that_can_be_dialled_directly():
    relayed = "/ip4/10.0.0.1/tcp/4001/p2p/QmSeed/p2p-circuit/p2p/QmPeer"
    assert _places([SEED, relayed, "/ip4/10.0.0.3/udp/1/quic/p2p/Qm"]) == [("10.0.0.1", 4001)]


def test_a_detour_leads_both_ways_and_ends_with_either_side():
    async def echo(reader, writer):
        writer.write(await reader.readexactly(4))
        writer.close()

    async def there_and_back():
        async with await asyncio.start_server(echo, "127.0.0.1") as server:
            async with detour(*server.sockets[0].getsockname()) as address:
                *_, host, _, port = address.split("/")
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"ping")
                answer = await asyncio.wait_for(reader.read(), 10)
                writer.close()
                await writer.wait_closed()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(host, int(port))
            return answer

    assert asyncio.run(there_and_back()) == b"ping"


def test_a_detour_to_nobody_ends_at_once():
    async def nowhere():
        async with detour("127.0.0.1", 1) as address:
            *_, host, _, port = address.split("/")
            reader, writer = await asyncio.open_connection(host, int(port))
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await writer.wait_closed()
        return answer

    assert asyncio.run(nowhere()) == b""
