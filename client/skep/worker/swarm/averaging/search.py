"""How an averager finds a group for a round.

Stock behaviour that this corrects, each covered by a test: the search queries the DHT without a pause, and goes on
until the round's time is up, also if no other peer is connected; a peer that has harmed a round is asked for the next; whatever a
leader says of its group is believed, so that it may let us average nothing for others, or itself be several members, and
alone decide what the average is; and whatever is found in the place of a peer's id is written as text, which takes the
square of its length.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any, Final

from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.averaging.matchmaking import Matchmaking, MatchmakingException
from hivemind.p2p import P2P, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import get_dht_time

from skep.worker.connection.stored import is_id
from skep.worker.swarm.averaging.groups import GROUP_ID_BYTES, Company, Groups

LOOK_SECONDS: Final = 0.2
"""Between two look-ups of group leaders."""
NOBODY_SECONDS: Final = 0.3
"""Between two looks at whether anybody can come."""


class UnhurriedKeys(GroupKeyManager):
    """Look-up of averagers that search for a group, with a pause between look-ups.

    hivemind queries as fast as the DHT answers until the group is formed: in a local network hundreds of times a
    second, in three processes, on the cores that train.
    """

    looked = float("-inf")
    """When the last look-up began; monotonic."""
    seen: frozenset[PeerID] = frozenset()
    """The averagers that the last look-up found."""
    avoids: Callable[[PeerID], bool] = staticmethod(lambda _peer: False)
    """Whether a peer is left out of what is found."""

    # hivemind's signature
    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:  # noqa: FBT001
        await asyncio.sleep(max(0.0, self.looked + LOOK_SECONDS - time.monotonic()))
        begun = time.monotonic()
        answer = await self.dht.get(group_key, latest=True, return_future=True)
        records = answer.value if answer and isinstance(answer.value, dict) else {}
        found = [
            (PeerID(subkey), record.expiration_time)
            for subkey, record in records.items()
            if is_id(subkey) and (record.value or not only_active) and not self.avoids(PeerID(subkey))
        ]
        self.looked, self.seen = begun, frozenset(peer for peer, _expiration in found)
        return found


class Leaders:
    """Whom hivemind's search asks for a place in their group. What can be no peer's id is left out of their answers."""

    def __init__(self, kind: Any) -> None:
        """`kind` is the averagers' class, which makes the stubs."""
        self._kind = kind

    def get_stub(self, p2p: P2P, leader: PeerID, *, namespace: str) -> Any:
        """With the one call that the search makes."""
        stub = self._kind.get_stub(p2p, leader, namespace=namespace)

        async def join(request: averaging_pb2.JoinRequest) -> AsyncGenerator[averaging_pb2.MessageFromLeader, None]:
            return _readable(await stub.rpc_join_group(request))

        return SimpleNamespace(rpc_join_group=join)


async def _readable(messages: Any) -> AsyncGenerator[averaging_pb2.MessageFromLeader, None]:
    async with contextlib.aclosing(messages):
        async for message in messages:
            if not is_id(message.suggested_leader):
                message.ClearField("suggested_leader")
            yield message


class BoundedSearch:
    """hivemind's search for a group, until the round has been due for as long as peers in step need to meet.

    hivemind's own lasts until the round's time is up, while the training thread waits for the round: so one peer is
    missing in the round that the others wait for, and meets them when they begin the next one, in every epoch.
    """

    def __init__(self, search: Matchmaking, groups: Groups, company: Company) -> None:
        """Replaces the methods of `search` that find and assemble a group."""
        self._search, self._groups, self._company = search, groups, company
        keys = search.group_key_manager
        self._keys = UnhurriedKeys(keys.dht, keys.prefix, keys.group_bits, keys.target_group_size)
        self._keys.avoids = company.avoids
        self._look, self._lead, self._follow = (
            search.look_for_group,
            search.leader_assemble_group,
            search.follower_assemble_group,
        )
        self._found: dict[StepControl, asyncio.Future[GroupInfo]] = {}
        self._looks = set[asyncio.Task[Any]]()
        search.group_key_manager = self._keys
        search._servicer_type = Leaders(search._servicer_type)  # noqa: SLF001 - hivemind has no other way
        search.look_for_group = self.look_for_group
        search.leader_assemble_group, search.follower_assemble_group = self._assemble, self._join

    async def look_for_group(self, step: StepControl) -> GroupInfo | None:
        """In place of hivemind's, which returns only after it has withdrawn our record from the DHT."""
        found = self._found[step] = asyncio.get_running_loop().create_future()
        look = asyncio.create_task(self._look(step))
        look.add_done_callback(self._looked)
        self._looks.add(look)
        due = asyncio.create_task(step.wait_for_trigger())
        try:
            await asyncio.wait({look, found, due}, return_when=asyncio.FIRST_COMPLETED)
            if not (look.done() or found.done()):
                await self._wait_for_others(look, found)
            if found.done():
                return found.result()
            if look.done():
                return await look
            step._deadline = get_dht_time()  # noqa: SLF001 - hivemind would begin another search
            return None
        finally:
            del self._found[step]
            due.cancel()
            if not found.done():
                look.cancel()

    def _looked(self, look: asyncio.Task[Any]) -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()  # an error is raised to whoever waited for it

    async def _wait_for_others(self, *ends: asyncio.Future[Any]) -> None:
        """Wait until one of `ends` is there, or nobody can come any more."""
        due = time.monotonic()
        needed = self._search.min_matchmaking_time + self._search.request_timeout
        while time.monotonic() - due < (2 if self._has_company else 1) * needed:
            done, _ = await asyncio.wait(ends, timeout=NOBODY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if done or (self._nobody_seen_since(due) and await self._company.is_gone()):
                return

    @property
    def _has_company(self) -> bool:
        """A group is being gathered: its leader waits for as long as it has announced, which began before we were due."""
        return bool(self._search.current_followers or self._search.current_leader)

    def _nobody_seen_since(self, due: float) -> bool:
        others = self._keys.seen - {self._search.peer_id} - self._company.met
        return self._keys.looked >= due and not others and not self._has_company

    async def _assemble(self) -> GroupInfo:
        step = self._search.step_control
        return self._note(step, await self._lead())

    async def _join(self, leader: PeerID, message: averaging_pb2.MessageFromLeader) -> GroupInfo:
        if len(message.group_id) != GROUP_ID_BYTES:
            raise MatchmakingException(f"{leader} named a group with an id of {len(message.group_id)} bytes")
        step = self._search.step_control
        if not all(map(is_id, message.ordered_peer_ids)):
            raise MatchmakingException(f"{leader} named a member by what is no peer's id")
        said = dict(zip(message.ordered_peer_ids, message.gathered, strict=False))  # hivemind compares their lengths
        if len(said) < len(message.ordered_peer_ids) or leader.to_bytes() not in said:
            raise MatchmakingException(f"{leader} named a group with a member twice, or without itself")
        if said.get(self._search.peer_id.to_bytes()) != step.data_for_gather:
            raise MatchmakingException(f"{leader} said something else of this peer than it had said itself")
        return self._note(step, await self._follow(leader, message))

    def _note(self, step: StepControl, group: GroupInfo) -> GroupInfo:
        if step in self._found and not self._found[step].done():
            self._groups.found(group.group_id, step, group.peer_ids)
            self._found[step].set_result(group)
        else:
            self._groups.end(group.group_id)  # it came too late, and its members are told so
        return group
