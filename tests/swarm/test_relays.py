"""What real p2pd says of relays: none has taken a peer on loopback, whether it listens or is a client; how much passes."""

import asyncio
import contextlib

import hivemind
from hivemind.p2p import PeerID

from skep.worker.connection.relays import becomes_relayed, is_relayed, start_relayed, start_relaying, through

SINK = "skep-test-sink"
LARGE = 1 << 20
"""Bytes: eight times as many as one of p2pd's two relays lets pass."""


def test_peers_without_a_relay_know_it(make_dhts):
    (seed,) = make_dhts(1)
    assert not is_relayed(seed)
    seeds = [str(address) for address in seed.get_visible_maddrs()]
    for options in ({"client_mode": True, "no_listen": True}, through(seeds)):
        dht = start_relayed(lambda options=options: hivemind.DHT(seeds, start=True, startup_timeout=60, **options))
        try:
            assert not becomes_relayed(dht)
        finally:
            dht.shutdown()


# these two run in processes of DHTs, which were forked after this module was imported


async def take(_dht, node):
    async def sink(_stream, reader, writer):
        with contextlib.closing(writer):
            writer.write(len(await reader.readexactly(LARGE)).to_bytes(4, "big"))
            await writer.drain()

    await node.p2p.add_binary_stream_handler(SINK, sink)


async def send(dht, node):
    """What arrived of LARGE bytes at the peer of our last bootstrap address."""
    peer = PeerID.from_base58(str(dht.initial_peers[-1]).rpartition("/")[2])
    addresses = [str(address) for each in await node.p2p.list_peers() if each.peer_id == peer for address in each.addrs]
    assert addresses
    assert all("p2p-circuit" in address for address in addresses)
    async with asyncio.timeout(60):
        _, reader, writer = await node.p2p.call_binary_stream_handler(peer, SINK)
        with contextlib.closing(writer):
            writer.write(bytes(LARGE))
            await writer.drain()
            return int.from_bytes(await reader.readexactly(4), "big")


def test_more_passes_through_a_seed_than_through_one_of_p2pd_s_relays(private_sockets):
    started = []

    def make(*addresses, **options):
        started.append(hivemind.DHT(initial_peers=addresses, start=True, startup_timeout=60, **options))
        return started[-1]

    try:
        seed = start_relaying(lambda options: make(**options))
        at = [str(address) for address in seed.get_visible_maddrs()]
        hidden = start_relayed(lambda: make(*at, client_mode=True, no_listen=True, **through(at)))
        hidden.run_coroutine(take)
        sender = make(*at, f"{at[0]}/p2p-circuit/p2p/{hidden.peer_id}")
        assert sender.run_coroutine(send) == LARGE
    finally:
        for dht in reversed(started):
            dht.shutdown()
