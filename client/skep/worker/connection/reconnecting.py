"""Starting the worker anew when the network is there again and p2pd does not use it.

While there is no network every dial of p2pd fails, and after the n-th failure it waits 5 s + n² s before the next one (the
back-off of go-libp2p's swarm). Connections from an address that this computer has lost seem open to it for another 40 s
(yamux asks every 30 s). A worker that is started anew knows of neither. Whether the network is there is found out by plain
TCP connections to peers that were connected before.

The coroutines run in the DHT's process, which has to be forked after this module was imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import hivemind
import psutil

from skep.core.text import Text
from skep.worker.connection.reachability import DIAL_SECONDS, answers
from skep.worker.connection.seeds import by_identity, greet
from skep.worker.connection.watch import Part, p2pd_of

PAUSE_SECONDS: Final = 2.0
"""Between two attempts to reach anybody."""
LOOK_SECONDS: Final = 20.0
"""A look lasts this long where nobody is reached."""
PATIENCE_SECONDS: Final = 10.0
"""How long p2pd may take to connect to peers that answer; its first waits are shorter."""
MOST_TRIED: Final = 8


class Connections:
    """Those of this worker's p2pd, as multiaddresses with the peer's id at the end.

    The methods raise TimeoutError where the DHT's process does not answer, and whatever p2pd says.
    """

    def __init__(self, dht: hivemind.DHT) -> None:
        self._dht, self._daemons = dht, p2pd_of(dht)

    def seeds(self) -> Sequence[str]:
        return [str(each) for each in self._dht.initial_peers or ()]

    def open(self) -> Sequence[str]:
        """What p2pd takes for open."""
        found: list[str] = self._ask(_open)
        return found

    def from_lost_addresses(self) -> bool:
        """Whether all that are open to other computers are from addresses that this one no longer has."""
        used = {
            each.laddr.ip.removeprefix("::ffff:")
            for daemon in self._daemons
            for each in daemon.net_connections("tcp")
            if each.status == psutil.CONN_ESTABLISHED
        }
        ours = {each.address.partition("%")[0] for found in psutil.net_if_addrs().values() for each in found}
        return bool(used) and not used & ours

    def answering(self, addresses: Sequence[str]) -> bool:
        """Whether libp2p answers at any of the addresses, beside p2pd."""
        return bool(self._ask(partial(_answering, addresses=addresses)))

    def connect(self, addresses: Sequence[str]) -> None:
        """Have p2pd connect to them, as far as it does."""
        self._ask(partial(_connect, addresses=addresses))

    def _ask(self, coroutine: Callable[..., Any]) -> Any:
        return self._dht.run_coroutine(coroutine, return_future=True).result(PATIENCE_SECONDS)


class Reconnecting:
    """`ended` is true once p2pd does not come back to peers that answer."""

    def __init__(
        self,
        connections: Connections,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._connections, self._clock, self._pause = connections, clock, pause
        self._met: Sequence[str] = ()
        self.ended = False

    def look(self, _within: float) -> None:
        """See whether anybody is connected; else wait for the network, and then for p2pd."""
        with contextlib.suppress(Exception):  # of a process that does not answer another part tells
            self._look()

    def _look(self) -> None:
        begun, answered = self._clock(), None
        while not self._is_connected() and self._met and self._clock() < begun + LOOK_SECONDS:
            if not self._connections.answering(self._met):
                answered = None
            elif self._connections.from_lost_addresses():
                self.ended = True
                return
            else:
                answered = self._clock() if answered is None else answered
                if self._clock() - answered >= PATIENCE_SECONDS:
                    self.ended = True
                    return
                self._connections.connect(self._met)
            self._pause(PAUSE_SECONDS)

    def _is_connected(self) -> bool:
        found = self._connections.open()
        if not found or self._connections.from_lost_addresses():
            return False
        self._met = [*self._connections.seeds(), *found][:MOST_TRIED]
        return True


def part(dht: hivemind.DHT) -> Part:
    """The connections to other peers, which end where they do not come back by themselves."""
    watched = Reconnecting(Connections(dht))
    return Part(Text("watch.connections"), lambda: watched.ended, watched.look)


# these run in the DHT's process, which finds them by name


async def _open(_dht: hivemind.DHT, node: Any) -> list[str]:
    return [f"{address}/p2p/{each.peer_id}" for each in await node.p2p.list_peers() for address in each.addrs]


async def _answering(_dht: hivemind.DHT, _node: Any, addresses: Sequence[str]) -> bool:
    return any(await asyncio.gather(*(answers(host, port) for host, port in _places(addresses))))


async def _connect(dht: hivemind.DHT, node: Any, addresses: Sequence[str]) -> None:
    peers = by_identity(addresses)
    await asyncio.gather(*(greet(dht, node, peer, where, DIAL_SECONDS) for peer, where in peers.items()))


def _places(addresses: Sequence[str]) -> Sequence[tuple[str, int]]:
    """Hosts and TCP ports of those that can be dialled directly."""
    parts = [each.split("/") for each in addresses if "p2p-circuit" not in each]
    return [(each[2], int(each[4])) for each in parts if each[3] == "tcp"]
