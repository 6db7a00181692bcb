"""Connecting again when the network is back and p2pd stays away from the others.

While there is no network every dial of p2pd fails, and after the n-th failure it tries an address again only 5 s + n² s
later (the back-off of go-libp2p's swarm). Connections from an address that this computer has lost seem open to it for 40 s
(yamux asks every 30 s). So here plain TCP connections find out whether peers of before answer, dead connections are closed,
and where p2pd refuses to dial it is led to the peer by a detour: a port on this computer, for which it has no back-off. A
connection, which the two peers encrypt as any other, ends the back-off of that peer, and then it is dialled directly.

The coroutines run in the DHT's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import hivemind
import psutil
from hivemind.p2p import PeerID
from hivemind.utils import get_logger

from skep.worker.connection.reachability import DIAL_SECONDS, answers
from skep.worker.connection.seeds import by_identity, greet
from skep.worker.connection.watch import p2pd_of

LOOK_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 2.0
"""Between two attempts to reach anybody."""
AWAY_SECONDS: Final = 60.0
"""How long after the network is back the other peers of before are tried too."""
MOST_TRIED: Final = 16
LOOPBACK: Final = "127.0.0.1"
CHUNK: Final = 1 << 16

logger = get_logger(__name__)


_running = set[asyncio.Task[None]]()
"""asyncio keeps no task that nobody else refers to."""


async def keep_connected(dht: hivemind.DHT, node: Any) -> None:
    """From now on connect again whenever all connections are gone."""
    _running.add(asyncio.create_task(_keep_connected(Reconnecting(Connections(dht, node)))))


async def _keep_connected(reconnecting: Reconnecting) -> None:
    while True:
        pause = PAUSE_SECONDS
        try:
            pause = await reconnecting.look()
        except Exception as error:  # noqa: BLE001 - whatever p2pd says, or that it has ended: others watch it
            logger.warning("the connections to other peers are not known: %r", error)
        await asyncio.sleep(pause)


class Connections:
    """Those of this worker's p2pd. Addresses are multiaddresses with the peer's id at the end.

    The methods raise whatever p2pd says.
    """

    def __init__(self, dht: hivemind.DHT, node: Any) -> None:
        self._dht, self._node = dht, node
        self.seeds: Sequence[str] = [str(each) for each in dht.initial_peers or ()]

    async def open(self) -> Sequence[str]:
        """What p2pd takes for open."""
        peers = await self._node.p2p.list_peers()
        return [f"{address}/p2p/{each.peer_id}" for each in peers for address in each.addrs]

    def from_lost_addresses(self) -> bool:
        """Whether all that are open to other computers are from addresses that this one no longer has."""
        try:
            used = _used(each for daemon in p2pd_of(self._dht) for each in daemon.net_connections("tcp"))
            ours = {each.address.partition("%")[0] for found in psutil.net_if_addrs().values() for each in found}
        except (psutil.Error, OSError):  # some systems do not tell
            return False
        return bool(used) and not used & ours

    async def answering(self, addresses: Sequence[str]) -> bool:
        """Whether libp2p answers at any of the addresses, beside p2pd."""
        for each in asyncio.as_completed([answers(host, port) for host, port in _places(addresses)]):
            if await each:
                return True
        return False

    async def close(self, addresses: Sequence[str]) -> None:
        await asyncio.gather(*map(self._close, by_identity(addresses)))

    async def connect(self, addresses: Sequence[str]) -> None:
        """Connect to those peers, as far as they answer."""
        await asyncio.gather(*(self._connect(peer, where) for peer, where in by_identity(addresses).items()))

    async def _close(self, peer: str) -> None:
        await self._node.p2p._client.disconnect(PeerID.from_base58(peer))  # noqa: SLF001 - hivemind's P2P cannot

    async def _connect(self, peer: str, addresses: Sequence[str]) -> None:
        greeted = partial(greet, self._dht, self._node, peer, patience=DIAL_SECONDS)
        greeting = await greeted(addresses)
        if not greeting.failure or greeting.is_other:
            return
        for host, port in _places(addresses):
            async with detour(host, port) as address:
                greeting = await greeted([f"{address}/p2p/{peer}"])
                if not greeting.failure:
                    await self._close(peer)
                    await greeted(addresses)
                    return


@dataclass
class Reconnecting:
    """`clock` is in seconds."""

    connections: Connections
    clock: Callable[[], float] = time.monotonic
    _met: Sequence[str] = ()
    """The seeds, and peers to which there were connections, the last first: they do not end at the same time."""
    _away: Sequence[str] = ()
    """Peers to connect to, until a time, since all connections were gone: one may have come back without the others."""
    _until: float = 0.0

    async def look(self) -> float:
        """Connect again if that is needed and possible; returns the seconds until the next look."""
        found = await self.connections.open()
        if not found or self.connections.from_lost_addresses():
            self._away, self._until = self._met, self.clock() + AWAY_SECONDS
            if self._met and await self.connections.answering(self._met):
                await self.connections.close(found)
                await self._connect()
            return PAUSE_SECONDS
        self._met = list(dict.fromkeys([*self.connections.seeds, *found, *self._met]))[:MOST_TRIED]
        connected = by_identity(found)
        self._away = [each for each in self._away if each.rpartition("/")[2] not in connected]
        if not self._away or self.clock() > self._until:
            return LOOK_SECONDS
        await self._connect()
        return PAUSE_SECONDS

    async def _connect(self) -> None:
        await self.connections.connect(self._away)
        opened = len(await self.connections.open())
        logger.warning("connecting again to %d addresses: %d are open", len(self._away), opened)


@contextlib.asynccontextmanager
async def detour(host: str, port: int) -> AsyncIterator[str]:
    """The multiaddress of a port on this computer that leads there. It and its connections end with the context."""
    leading = set[asyncio.Task[None]]()

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        leading.add(asyncio.create_task(_lead(host, port, reader, writer)))

    async with await asyncio.start_server(lead, LOOPBACK) as server:
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


def _used(connections: Any) -> set[str]:
    """Our ends of established connections to other computers."""
    return {
        _plain(each.laddr.ip)
        for each in connections
        if each.status == psutil.CONN_ESTABLISHED and not _plain(each.raddr.ip).startswith(("127.", "::1"))
    }


def _plain(host: str) -> str:
    """An IPv4 address of a socket for IPv6 as such."""
    return host.removeprefix("::ffff:")


def _places(addresses: Sequence[str]) -> Sequence[tuple[str, int]]:
    """Hosts and TCP ports of those that can be dialled directly."""
    parts = [each.split("/") for each in addresses if "p2p-circuit" not in each]
    return [(each[2], int(each[4])) for each in parts if each[3] == "tcp"]
