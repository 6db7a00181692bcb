"""How an averager finds a group, which groups it is in, and who of its groupmates is lost.

Stock behaviour that this corrects, each covered by a test: the search queries the DHT without a pause, and goes on
until the round's time is up, also if nobody is left; a part for a group that is over waits until this peer's next round,
and a part for a group that will begin is refused if another one ends meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Container, Iterable
from itertools import chain
from typing import Final

from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.averaging.matchmaking import Matchmaking
from hivemind.p2p import PeerID
from hivemind.utils import get_dht_time

LOOK_SECONDS: Final = 0.2
"""Between two look-ups of group leaders."""
NOBODY_SECONDS: Final = 0.3
"""How long a peer that has not met us yet may take to be seen, when all those that have are gone."""
UNKNOWN_SECONDS: Final = 3.0
"""How long a groupmate may send before the leader's answer has named the group to us: a request's longest time."""
KEPT: Final = 64
"""Number of groups that are remembered after their end, and of groupmates."""
LOST_LOOK_SECONDS: Final = 0.5
"""Between two questions to a groupmate that is waited for."""


class UnhurriedKeys(GroupKeyManager):
    """Look-up of averagers that search for a group, with a pause between look-ups.

    hivemind queries as fast as the DHT answers until the group is formed: in a local network hundreds of times a
    second, in three processes, on the cores that train.
    """

    _looked = float("-inf")

    # hivemind's signature
    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:  # noqa: FBT001
        await asyncio.sleep(max(0.0, self._looked + LOOK_SECONDS - time.monotonic()))
        self._looked = time.monotonic()
        found: list[tuple[PeerID, float]] = await super().get_averagers(group_key, only_active)
        return found


class BoundedSearch:
    """hivemind's search for a group, until the round has been due for as long as peers in step need to meet.

    hivemind's own lasts until the round's time is up, while the training thread waits for the round: so one peer is
    missing in the round that the others wait for, and meets them when they begin the next one, in every epoch.
    """

    def __init__(self, search: Matchmaking, groups: Groups, company: Company) -> None:
        self._search, self._look = search, search.look_for_group
        self._groups, self._company = groups, company

    async def look_for_group(self, step: StepControl) -> GroupInfo | None:
        """In place of hivemind's."""
        look = asyncio.create_task(self._look(step))
        due = asyncio.create_task(step.wait_for_trigger())
        try:
            await asyncio.wait({look, due}, return_when=asyncio.FIRST_COMPLETED)
            if not look.done() and not await self._meets(look):
                step._deadline = get_dht_time()  # noqa: SLF001 - hivemind would begin another search
                return None
            group: GroupInfo | None = await look
        finally:
            due.cancel()
            look.cancel()  # not waited for: it withdraws our record from the DHT, and the next search waits for that
        if group is not None:
            self._groups.found(group.group_id, step)
        return group

    async def _meets(self, look: asyncio.Task[GroupInfo | None]) -> bool:
        """Wait for the end of the search, but not if nobody can come any more; return whether it has ended."""
        until = time.monotonic() + self._search.min_matchmaking_time + self._search.request_timeout
        while (left := until - time.monotonic()) > 0:
            await asyncio.wait({look}, timeout=min(left, NOBODY_SECONDS))
            if look.done():
                return True
            somebody = self._search.current_followers or self._search.current_leader
            if not somebody and await self._company.are_all_gone():
                break
        return False


class Company:
    """Groupmates of earlier rounds, and who of them is lost.

    A connection is closed at once when a peer's process dies, and stays otherwise: so a groupmate that was connected
    after a round, and is no more, is gone. One that hangs stays connected, and answers nothing. `connected` returns
    the peers that p2pd has a connection to; `answers` asks one, and returns whether it answered within so many seconds.
    """

    def __init__(
        self,
        connected: Callable[[], Awaitable[set[PeerID]]],
        answers: Callable[[PeerID, float], Awaitable[bool]],
    ) -> None:
        self._connected, self._answers = connected, answers
        self._met: dict[PeerID, None] = {}

    async def meet(self, groupmates: Iterable[PeerID]) -> None:
        """A round with them is over."""
        connected = await self._connected()
        for peer in groupmates:
            if peer in connected:
                self._met.pop(peer, None)  # so that the last entries are those seen last
                self._met[peer] = None
        for peer in list(self._met)[:-KEPT]:
            del self._met[peer]

    async def are_all_gone(self) -> bool:
        """Whether there were groupmates, and none is connected any more."""
        return bool(self._met) and not self._met.keys() & await self._connected()

    async def until_lost(self, peer: PeerID, patience: float) -> None:
        """Return once this groupmate is gone, or has not answered for `patience` seconds."""
        while not (peer in self._met and peer not in await self._connected()):
            if not await self._answers(peer, patience):
                return
            await asyncio.sleep(LOST_LOOK_SECONDS)


class Groups:
    """The groups of an averager, in its own process: those it found, those that average, those that are over.

    `running` returns the ids of those that average, each the id of the group with a suffix for one all-reduce of several.
    """

    def __init__(self, running: Callable[[], Container[bytes]], unknown_seconds: float = UNKNOWN_SECONDS) -> None:
        self._running, self._unknown_seconds = running, unknown_seconds
        self._found: dict[StepControl, list[bytes]] = defaultdict(list)
        self._over: deque[bytes] = deque(maxlen=KEPT)
        self._changed = asyncio.Event()

    def found(self, group: bytes, step: StepControl) -> None:
        """The search of `step` has ended with a group; averaging in it begins when the step is due."""
        self._found[step].append(group)
        self.tell()

    def end(self, step: StepControl) -> None:
        """Nothing will be averaged in the groups of `step` any more."""
        self._over.extend(self._found.pop(step, ()))
        self.tell()

    def tell(self) -> None:
        """What waits in `comes` looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def comes(self, group: bytes) -> bool:
        """Wait until the all-reduce of `group` runs; return False if it is over, or if this peer is not in it."""
        unknown_until = asyncio.get_running_loop().time() + self._unknown_seconds
        while group not in self._running():
            if any(map(group.startswith, self._over)):
                return False
            until = None if any(map(group.startswith, chain.from_iterable(self._found.values()))) else unknown_until
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True
