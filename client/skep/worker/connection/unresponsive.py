"""Nodes of the DHT that do not answer: asked again in the background only, not by whoever needs an answer.

Stock behaviour that this corrects, each covered by a test: a node that hangs is asked again after 5, 10, 20 s … by the
next request, which takes 3 s longer for it; and the first request to such a node takes 3 s longer also if the caller
knows already that it hangs. A search for a group takes 3 s at most, so that in such an epoch no group is formed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any, Final, Protocol

from hivemind.dht import DHT
from hivemind.dht.node import Blacklist, DHTNode
from hivemind.p2p import PeerID

PAUSES: Final = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
"""Seconds between two questions whether it answers again; then always LAST_PAUSE."""
LAST_PAUSE: Final = 300.0
KEPT: Final = 256
"""Number of such nodes that are known at the same time."""


def growing() -> Iterator[float]:
    return chain(PAUSES, repeat(LAST_PAUSE))


class Asks(Protocol):
    async def call_ping(self, peer: PeerID) -> Any:
        """Returns None if `peer` does not answer."""


class Unresponsive(Blacklist):
    """In place of hivemind's list, in the DHT's process."""

    def __init__(self, protocol: Asks, pauses: Callable[[], Iterator[float]] = growing) -> None:
        super().__init__(base_time=0.0, backoff_rate=1.0)
        self._protocol, self._pauses = protocol, pauses
        self._asked: dict[PeerID, asyncio.Task[None]] = {}

    def register_failure(self, peer: PeerID) -> None:
        if peer not in self._asked:
            self._asked[peer] = asyncio.create_task(self._ask(peer))
            for oldest in list(self._asked)[:-KEPT]:
                self.register_success(oldest)

    def register_success(self, peer: PeerID) -> None:
        if task := self._asked.pop(peer, None):
            task.cancel()

    def __contains__(self, peer: object) -> bool:
        return peer in self._asked

    def clear(self) -> None:
        for peer in list(self._asked):
            self.register_success(peer)

    async def _ask(self, peer: PeerID) -> None:
        for pause in self._pauses():
            await asyncio.sleep(pause)
            if await self._protocol.call_ping(peer) is not None:
                break
        if self._asked.get(peer) is asyncio.current_task():
            del self._asked[peer]


async def ask_in_background(_dht: DHT, node: DHTNode) -> None:
    """Let a running node use this list; to be run in the DHT's process."""
    node.blacklist = Unresponsive(node.protocol)


async def pass_over(_dht: DHT, node: DHTNode, *, peer: PeerID) -> None:
    """No request asks this node until it has answered in the background; to be run in the DHT's process."""
    node.blacklist.register_failure(peer)
