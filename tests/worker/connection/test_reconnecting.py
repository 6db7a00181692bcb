"""When a worker connects again by itself, and the detour to peers that p2pd would not dial."""

import asyncio
from types import SimpleNamespace

import psutil
import pytest

from skep.worker.connection import reconnecting
from skep.worker.connection.reachability import place_of
from skep.worker.connection.reconnecting import (
    ALL_SECONDS,
    AWAY_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LOOK_SECONDS,
    MOST_TRIED,
    PAUSE_SECONDS,
    Connections,
    Reconnecting,
    dead,
    detour,
)

SEED, PEER, THIRD = (f"/ip4/10.0.0.{number}/tcp/4001/p2p/Qm{number}" for number in (1, 2, 3))


class Fake:
    """Connections that the test decides."""

    def __init__(self):
        self.seeds = [SEED]
        self.now = 0.0
        self.found, self.there, self.dead = [SEED, PEER], True, []
        self.asked, self.closed, self.connected = [], [], []

    async def open(self):
        return self.found

    async def lost(self, found):
        return [each for each in found if each in self.dead]

    async def answering(self, addresses):
        self.asked.append(addresses)
        return addresses if self.there else []

    async def close(self, peers):
        self.closed += peers

    async def connect(self, addresses):
        self.connected.append(addresses)


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def look(fake):
    watched = Reconnecting(fake, lambda: fake.now)
    return lambda: asyncio.run(watched.look())


def test_while_all_are_connected_nobody_is_tried(look, fake):
    assert look() == LOOK_SECONDS
    assert (fake.asked, fake.connected) == ([], [])


def test_who_was_never_connected_is_left_alone(look, fake):
    fake.found = []
    assert look() == LOOK_SECONDS
    assert fake.asked == []


def test_who_leaves_while_others_stay_is_not_called_back(look, fake):
    look()
    fake.found = [SEED]
    assert look() == LOOK_SECONDS
    assert fake.asked == []


def test_without_a_network_it_waits_longer_and_longer(look, fake):
    look()
    fake.found, fake.there = [], False
    pauses = []
    for fake.now in (0.0, 120.0, 600.0, 3600.0, 100_000.0):
        pauses.append(look())
    assert pauses == [PAUSE_SECONDS, PAUSE_SECONDS, 10.0, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]
    assert fake.connected == []
    assert fake.asked[0] == [SEED, PEER]  # the seed once
    assert fake.asked[-1] == [SEED]


def test_when_the_network_is_back_those_of_before_are_connected(look, fake):
    look()
    fake.found = []
    assert look() == PAUSE_SECONDS
    assert fake.connected == [[SEED, PEER]]
    fake.found = [SEED, PEER]
    assert look() == LOOK_SECONDS
    assert len(fake.connected) == 1


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


def test_a_later_loss_is_one_of_its_own_although_a_peer_never_came_back(look, fake):
    look()
    fake.found = []
    look()
    fake.found, fake.now = [SEED], AWAY_SECONDS + 1
    look()
    fake.found, fake.now = [], ALL_SECONDS + AWAY_SECONDS + 2
    assert look() == PAUSE_SECONDS
    assert fake.connected[-1] == [SEED, PEER]


def test_peers_that_end_one_after_the_other_are_all_remembered(look, fake):
    look()
    fake.found = [SEED]
    look()
    fake.found = []
    look()
    assert fake.connected == [[SEED, PEER]]


def test_dead_connections_are_closed_and_the_others_stay(look, fake):
    fake.found = [SEED, PEER, THIRD]
    look()
    fake.dead = [PEER, THIRD]
    assert look() == PAUSE_SECONDS
    assert fake.closed == ["Qm2", "Qm3"]
    assert fake.connected == [[PEER, THIRD]]


def test_but_not_before_there_is_a_network_again(look, fake):
    look()
    fake.dead, fake.there = [SEED, PEER], False
    look()
    assert (fake.closed, fake.connected) == ([], [])


def test_few_peers_are_tried(look, fake):
    fake.found = [f"/ip4/10.0.1.{number}/tcp/1/p2p/Qm{number}" for number in range(50)]
    look()
    fake.found = []
    look()
    assert len(fake.asked[0]) == MOST_TRIED
    assert fake.asked[0][0] == SEED


# --- dead connections


def connection(ours, theirs="10.0.0.2", status=psutil.CONN_ESTABLISHED):
    there = SimpleNamespace(ip=theirs, port=4001) if theirs else ()
    return SimpleNamespace(laddr=SimpleNamespace(ip=ours), raddr=there, status=status)


OURS = {"127.0.0.1", "::1", "10.0.0.9", "fe80::9"}


@pytest.mark.parametrize(
    ("one", "where"),
    [
        (connection("0.0.0.0", None, psutil.CONN_LISTEN), None),
        (connection("10.0.0.8"), ("10.0.0.2", 4001)),
        (connection("10.0.0.9"), None),
        (connection("::ffff:10.0.0.8", "::ffff:10.0.0.2"), ("10.0.0.2", 4001)),
        (connection("::ffff:10.0.0.9", "::ffff:10.0.0.2"), None),
        (connection("fe80::9%eth0", "fe80::2"), None),
        # a peer on this computer is reached whatever its address is
        (connection("127.0.0.1", "127.0.0.1"), None),
        (connection("127.0.0.2", "127.0.0.1"), None),
        (connection("10.0.0.8", status=psutil.CONN_SYN_SENT), None),
    ],
)
def test_dead_are_those_from_an_address_that_was_lost(one, where):
    assert dead(OURS, [one]) == ({where} if where else set())


def test_without_any_address_it_is_too_early_to_tell():
    assert dead({"127.0.0.1", "::1"}, [connection("10.0.0.8")]) == set()


def lost(monkeypatch, told, found):
    def net_connections(kind):
        if told is None:
            raise psutil.AccessDenied
        return told

    monkeypatch.setattr(reconnecting, "p2pd_of", lambda dht: [SimpleNamespace(net_connections=net_connections)])
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth0": [SimpleNamespace(address="10.0.0.9%eth0")]})
    return asyncio.run(Connections(SimpleNamespace(initial_peers=None), None).lost(found))


def test_a_peer_is_lost_with_all_its_connections(monkeypatch):
    told = [connection("10.0.0.8", "10.0.0.2"), connection("10.0.0.8", "10.0.0.3")]
    again = THIRD.replace("4001", "4002")
    assert lost(monkeypatch, told, [SEED, PEER, THIRD, again]) == [PEER]


def test_a_system_that_does_not_tell_lost_no_peer(monkeypatch):
    assert lost(monkeypatch, None, [SEED, PEER]) == []


def test_places_are_those_that_can_be_dialled_directly():
    relayed = f"{SEED}/p2p-circuit/p2p/QmPeer"
    assert [place_of(each) for each in (SEED, relayed, "/ip4/10.0.0.3/udp/1/quic/p2p/Qm")] == [
        ("10.0.0.1", 4001),
        None,
        None,
    ]


def test_a_detour_leads_one_connection_both_ways_and_ends_with_either_side():
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
