"""One all-reduce among the members of a group, and which groups this averager is in.

Stock behaviour that this corrects, each covered by a test: a part for a group that is over waits until this peer's next
round, and a part for a group that will begin is refused if another one ends meanwhile; a groupmate that cannot be
reached, or that says that the group is over, is waited for as long as a silent one. Because of the first and the last,
two peers that once missed each other's round miss each other in every later one: each comes when the other has given
up, and waits so long that it is late for the next round itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container
from typing import Final

from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.p2p import PeerID

UNKNOWN_SECONDS: Final = 3.0
"""How long a groupmate may send before the leader's answer has named the group to us: a request's longest time."""
KEPT: Final = 64
"""Number of groups that are remembered after their end."""


class PromptAllReduce(AllReduceRunner):
    """Does not wait for the data of a groupmate that cannot be reached or that refuses ours, unless it has begun to send."""

    async def _communicate_with_peer(self, peer_id: PeerID) -> None:
        try:
            await super()._communicate_with_peer(peer_id)
        except Exception:
            if peer_id in self.sender_peer_ids and peer_id not in self.active_senders:
                await self._ban_sender(peer_id)
            raise


class Groups:
    """The groups of an averager, in its own process: those it found, those that average, those that are over.

    `running` returns the ids of those that average, each the id of the group with a suffix for one all-reduce of several.
    """

    def __init__(self, running: Callable[[], Container[bytes]]) -> None:
        self._running = running
        self._found: set[bytes] = set()
        self._over: deque[bytes] = deque(maxlen=KEPT)
        self._changed = asyncio.Event()

    def found(self, group: bytes) -> None:
        """The search for a group is over; averaging in it begins when this peer's gradients are complete."""
        self._found.add(group)
        self.tell()

    def end(self, group: bytes) -> None:
        """Nothing will be averaged in `group` any more."""
        self._found.discard(group)
        self._over.append(group)
        self.tell()

    def tell(self) -> None:
        """What waits in `comes` looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def comes(self, group: bytes) -> bool:
        """Wait until the all-reduce of `group` runs; return False if it is over, or if this peer is not in it."""
        unknown_until = asyncio.get_running_loop().time() + UNKNOWN_SECONDS
        while group not in self._running():
            if any(map(group.startswith, self._over)):
                return False
            until = None if any(map(group.startswith, self._found)) else unknown_until
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True
