"""Connecting again when the network is back and p2pd stays away from the others.

While there is no network every dial of p2pd fails, and after the n-th failure it tries an address again only 5 s + (n-1)² s
later (the back-off of go-libp2p's swarm). Connections from an address that this computer has lost seem open to it for 40 s
(yamux asks every 30 s). So here plain TCP connections find out which peers of before answer, dead connections are closed,
and where p2pd refuses to dial it is led to the peer by a detour: a port on this computer, for which it has no back-off. A
connection, which the two peers encrypt as any other, ends the back-off of that peer, and then it is dialled directly.

The coroutines run in the DHT's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import hivemind
import psutil
from hivemind.p2p import PeerID
from hivemind.utils import get_logger
from hivemind.utils.multiaddr import Multiaddr

from skep.core.project.addresses import is_peer_address
from skep.dialling import may_be_dialled, own_networks
from skep.worker.connection.reachability import DIAL_SECONDS, answering, connected, place_of
from skep.worker.connection.seeds import by_identity, greet
from skep.worker.connection.watch import p2pd_of

LOOK_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 2.0
"""At least, between two attempts to reach anybody."""
LONGEST_PAUSE_SECONDS: Final = 60.0
PAUSE: Final = 1 / 60
"""Part of the time that peers have been away until the next attempt."""
AWAY_SECONDS: Final = 60.0
"""How long after the first is back the other peers of before are tried too."""
ALL_SECONDS: Final = 3600.0
"""Of a longer absence of everybody the seeds only are tried."""
MOST_TRIED: Final = 16
LOOPBACK: Final = "127.0.0.1"
CHUNK: Final = 1 << 16

logger = get_logger(__name__)
Place = tuple[str, int]
"""Host and TCP port."""

_running = set[asyncio.Task[None]]()
"""asyncio keeps no task that nobody else refers to."""


async def keep_connected(dht: hivemind.DHT, node: Any) -> None:
    """From now on connect again to peers that were lost together with the network, or with this computer's address."""
    _running.add(asyncio.create_task(_keep_connected(Reconnecting(Connections(dht, node)))))


async def _keep_connected(reconnecting: Reconnecting) -> None:
    while True:
        pause = LOOK_SECONDS
        try:
            pause = await reconnecting.look()
        except Exception as error:  # noqa: BLE001 - whatever p2pd says, or that it has ended: others watch it
            logger.warning("the connections to other peers are not known: %r", error)
        await asyncio.sleep(pause)


class Connections:
    """Those of this worker's p2pd. Addresses are multiaddresses with the peer's id at the end.

    `open` raises whatever p2pd says.
    """

    def __init__(self, dht: hivemind.DHT, node: Any) -> None:
        self._dht, self._node = dht, node
        self.seeds: Sequence[str] = [str(each) for each in dht.initial_peers or ()]

    async def open(self) -> Sequence[str]:
        """What p2pd takes for open."""
        return await connected(self._node.p2p)

    async def lost(self, found: Sequence[str]) -> Sequence[str]:
        """Those of `found` whose peers are connected only from addresses that this computer no longer has."""
        dead = await asyncio.to_thread(self._dead)
        return [
            address
            for where in by_identity(found).values()
            if dead.issuperset(map(place_of, where))
            for address in where
        ]

    def _dead(self) -> frozenset[Place | None]:
        try:
            ours = {each.address.partition("%")[0] for found in psutil.net_if_addrs().values() for each in found}
            return dead(ours, [each for daemon in p2pd_of(self._dht) for each in daemon.net_connections("tcp")])
        except (psutil.Error, OSError):  # some systems do not tell
            return frozenset()

    async def answering(self, addresses: Sequence[str]) -> Sequence[str]:
        """At which of these addresses libp2p answers, beside p2pd. Where this computer may not dial, nobody is asked."""
        ours = own_networks()
        may = [
            each for each in addresses if each in self.seeds or (is_peer_address(each) and may_be_dialled(each, ours))
        ]
        return await answering(may)

    async def close(self, peers: Iterable[str]) -> None:
        """Close the connections of the peers with these ids, as far as there are any."""
        client = self._node.p2p._client  # noqa: SLF001 - hivemind's P2P cannot
        closing = (client.disconnect(PeerID.from_base58(peer)) for peer in peers)
        await asyncio.gather(*closing, return_exceptions=True)

    async def connect(self, addresses: Sequence[str]) -> None:
        """Connect to the peers at these addresses, which answer."""
        connecting = (self._connect(peer, where) for peer, where in by_identity(addresses).items())
        await asyncio.gather(*connecting, return_exceptions=True)

    async def _connect(self, peer: str, addresses: Sequence[str]) -> None:
        greeting = await greet(self._dht, self._node, peer, addresses, DIAL_SECONDS)
        if not greeting.failure or greeting.is_other:
            return
        for place in filter(None, map(place_of, addresses)):
            async with detour(*place) as address:
                with contextlib.suppress(Exception):  # whatever p2pd says of a peer that refuses
                    async with asyncio.timeout(DIAL_SECONDS):
                        await self._node.p2p._client.connect(PeerID.from_base58(peer), [Multiaddr(address)])  # noqa: SLF001 - as above
                # where the peer has dialled us meanwhile, that connection stays
                if by_identity(await self.open()).get(peer) == [f"{address}/p2p/{peer}"]:
                    await self.close([peer])
        await greet(self._dht, self._node, peer, addresses, DIAL_SECONDS)


@dataclass
class Reconnecting:
    """`clock` is in seconds."""

    connections: Connections
    clock: Callable[[], float] = time.monotonic
    _met: Sequence[str] = ()
    """The seeds, and peers to which there were connections, the last first: they do not end at the same time."""
    _away: Sequence[str] = ()
    """Addresses of peers that were lost together, which are tried."""
    _since: float = 0.0
    _until: float = 0.0

    async def look(self) -> float:
        """Connect again if that is needed and possible; returns the seconds until the next look."""
        found, now = await self.connections.open(), self.clock()
        lost = await self.connections.lost(found)
        alive = [each for each in found if each not in lost]
        self._note(alive, [*lost, *self._met] if not alive else lost, now)
        if alive and now > self._until:
            self._away = ()  # else the next loss would be taken for a part of this one
        if not self._away:
            return LOOK_SECONDS
        if answering := await self.connections.answering(self._away):
            await self.connections.close(by_identity(lost))
            await self.connections.connect(answering)
            opened = by_identity(await self.connections.open())
            logger.warning("connected again: %s", sorted(by_identity(answering).keys() & opened.keys()))
        return min(LONGEST_PAUSE_SECONDS, max(PAUSE_SECONDS, PAUSE * (now - self._since)))

    def _note(self, alive: Sequence[str], lost: Sequence[str], now: float) -> None:
        if lost:
            if not self._away:
                self._since = now
            everybody = now - self._since <= ALL_SECONDS
            self._away = list(dict.fromkeys(lost)) if everybody else self.connections.seeds
            self._until = now + AWAY_SECONDS
        if alive:
            self._met = list(dict.fromkeys([*self.connections.seeds, *alive, *self._met]))[:MOST_TRIED]
            there = by_identity(alive)
            self._away = [each for each in self._away if each.rpartition("/")[2] not in there]


@contextlib.asynccontextmanager
async def detour(host: str, port: int) -> AsyncIterator[str]:
    """The multiaddress of a port on this computer whose first connection leads there. It ends with the context."""
    leading = set[asyncio.Task[None]]()

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()
        leading.add(asyncio.create_task(_lead(host, port, reader, writer)))

    async with await asyncio.start_server(lead, LOOPBACK, backlog=1) as server:
        try:
            yield f"/ip4/{LOOPBACK}/tcp/{server.sockets[0].getsockname()[1]}"
        finally:
            for each in leading:
                each.cancel()
            await asyncio.gather(*leading, return_exceptions=True)


async def _lead(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy both ways until either side ends."""
    with contextlib.closing(writer), contextlib.suppress(OSError):
        reader_there, writer_there = await asyncio.open_connection(host, port)
        with contextlib.closing(writer_there):
            ways = [asyncio.create_task(_copy(*way)) for way in ((reader, writer_there), (reader_there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


def dead(ours: Collection[str], connections: Iterable[Any]) -> frozenset[Place | None]:
    """The other ends of established connections from addresses that are not `ours`; `connections` are as psutil's.

    Without any address of ours but loopback's there is no network, and it is too early to tell.
    """
    if all(map(_is_loopback, ours)):
        return frozenset()
    return frozenset(
        (_plain(each.raddr.ip), each.raddr.port)
        for each in connections
        if each.status == psutil.CONN_ESTABLISHED
        and _plain(each.laddr.ip) not in ours
        and not _is_loopback(_plain(each.laddr.ip))
    )


def _is_loopback(host: str) -> bool:
    return host == "::1" or host.startswith("127.")


def _plain(host: str) -> str:
    """An IPv4 address of a socket for IPv6 as such, and one of a link without the link's name."""
    return host.removeprefix("::ffff:").partition("%")[0]
