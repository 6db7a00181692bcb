"""How an averager finds a group for a round.

Stock behaviour that this corrects, each covered by a test: the search queries the DHT without a pause; it waits for a
DHT node that hangs, so that the others find us 6 s later, also if it is that of a leader that has stopped answering; it
goes on until the round's time is up, also if no other peer is connected, or none that does not hang; it asks a peer
that has harmed a round for the next one. Who declares first to begin leads everybody, also if no peer has ever averaged
with it, and as often as it accepts peers and then begins no group. A group of two is accepted, so that the first peer
may be in a group with an unknown one only. Whatever a leader says of its group is believed, so that we may average
nothing for others, or the leader may be several members and alone decide what the average is. What is found in the
place of a peer's id is written as text, which takes the square of its length.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.averaging.matchmaking import Matchmaking
from hivemind.p2p import P2P, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import get_dht_time

from skep.worker.connection.stored import is_id
from skep.worker.connection.unresponsive import pass_over
from skep.worker.swarm.averaging.groups import GROUP_ID_BYTES, KEPT, Company, Groups

LOOK_SECONDS: Final = 0.2
"""Between two look-ups of group leaders."""
DECLARE_SECONDS: Final = 1.0
"""How long the search waits until it has declared that it looks for a group."""
NOBODY_SECONDS: Final = 0.3
"""Between two looks at whether anybody can come."""
HANGING_SECONDS: Final = 2.0
"""A leader that has let us wait, and then does not answer a question for so long, is not waited for any longer."""
IN_STEP: Final = 0.5
"""By this part of the time of matchmaking peers in step may differ in when they expect or learn of the end of an epoch. A
group that begins earlier is that of a peer with a time of its own, which would take some of the others aside."""
_log = logging.getLogger(__name__)


async def _all_count(_found: Collection[PeerID]) -> Callable[[PeerID], bool]:
    return lambda _peer: False


class UnhurriedKeys(GroupKeyManager):
    """Look-up of averagers that search for a group, with a pause between look-ups.

    hivemind queries as fast as the DHT answers until the group is formed: in a local network hundreds of times a
    second, in three processes, on the cores that train.
    """

    looked = float("-inf")
    """When the last look-up began; monotonic."""
    seen: frozenset[PeerID] = frozenset()
    """The averagers that the last look-up found."""
    find_left_out: Callable[[Collection[PeerID]], Awaitable[Callable[[PeerID], bool]]] = staticmethod(_all_count)
    """Called at each look-up: which of the peers that are found do not count."""

    # hivemind's signature
    async def declare_averager(
        self,
        group_key: str,
        peer_id: PeerID,
        expiration_time: float,
        looking_for_group: bool = True,  # noqa: FBT001, FBT002 - hivemind's
    ) -> bool:
        """Returns after DECLARE_SECONDS at most.

        A store waits for a node of the DHT that hangs when it looks for nodes, and again when it sends them the record. The
        record has expired by then. The next record is due earlier, and that node, known by then, does not delay it.
        """
        declared = super().declare_averager(group_key, peer_id, expiration_time, looking_for_group)
        storing = asyncio.ensure_future(declared)
        storing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else may ask for it
        await asyncio.wait({storing}, timeout=DECLARE_SECONDS)
        return bool(storing.done() and storing.result())

    def pass_over(self, peer: PeerID) -> None:
        """Look-ups do not wait for this peer's node of the DHT until it has answered."""
        self.dht.run_coroutine(partial(pass_over, peer=peer), return_future=True)

    # hivemind's signature
    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:  # noqa: FBT001
        await asyncio.sleep(max(0.0, self.looked + LOOK_SECONDS - time.monotonic()))
        begun = time.monotonic()
        answer = await self.dht.get(group_key, latest=True, return_future=True)
        records = answer.value if answer and isinstance(answer.value, dict) else {}
        found = [
            (PeerID(subkey), record.expiration_time)
            for subkey, record in records.items()
            if is_id(subkey) and (record.value or not only_active)
        ]
        left_out = await self.find_left_out([peer for peer, _expiration in found])
        found = [(peer, expiration) for peer, expiration in found if not left_out(peer)]
        self.looked, self.seen = begun, frozenset(peer for peer, _expiration in found)
        return found


class Leaders:
    """The leaders that hivemind's search asks for a place in their group.

    Another leader that one of them names is removed from its answer if that is no peer's id, or if `refuses` is true of it.
    `let_wait` is called with a leader that has accepted us, and then said nothing more.
    """

    def __init__(self, kind: Any, refuses: Callable[[PeerID], bool], let_wait: Callable[[PeerID], object]) -> None:
        """`kind` is the averagers' class, which makes the stubs."""
        self._kind, self._refuses, self._let_wait = kind, refuses, let_wait

    def get_stub(self, p2p: P2P, leader: PeerID, *, namespace: str) -> Any:
        """With the one call that the search makes."""
        stub = self._kind.get_stub(p2p, leader, namespace=namespace)

        async def join(request: averaging_pb2.JoinRequest) -> AsyncGenerator[averaging_pb2.MessageFromLeader, None]:
            return self._said(leader, await stub.rpc_join_group(request))

        return SimpleNamespace(rpc_join_group=join)

    async def _said(self, leader: PeerID, messages: Any) -> AsyncGenerator[averaging_pb2.MessageFromLeader, None]:
        waiting = False
        try:
            async with contextlib.aclosing(messages):
                async for message in messages:
                    named = message.suggested_leader
                    if not is_id(named) or self._refuses(PeerID(named)):
                        message.ClearField("suggested_leader")
                    waiting = message.code == averaging_pb2.ACCEPTED
                    yield message
        finally:
            if waiting:
                self._let_wait(leader)


@dataclass(frozen=True)
class Seen:
    """What the last look-up found, and what follows from it until the next."""

    others: frozenset[PeerID] = frozenset()
    """Those that look for a group."""
    waits: bool = False
    """Whether those of our last round may come, so that no stranger leads us."""
    doubts: bool = True
    """Whether leaders that have let us wait are not asked: another expected peer looks for a group, follows us, or may
    still begin to look. A peer that follows a leader is not found by a look-up: if no other is found, all may follow such
    a leader."""


class BoundedSearch:
    """hivemind's search for a group, until the round has been due for as long as peers in step need to meet.

    hivemind's own lasts until the round's time is up, while the training thread waits for the round: so one peer is
    missing in the round that the others wait for, and meets them when they begin the next one, in every epoch.
    """

    def __init__(self, search: Matchmaking, groups: Groups, company: Company) -> None:
        """Replaces the methods of `search` that find and assemble a group."""
        self._search, self._groups, self._company = search, groups, company
        self._spent = set[PeerID]()
        """Leaders that are not followed again in this round: each costs no more of its time than once."""
        self._hanging = set[PeerID]()
        """Leaders that have let us wait in this round and answer nothing."""
        self._doubtful = deque[PeerID](maxlen=KEPT)
        """Leaders that have let us wait for a group, and have not begun one since. They are followed if others follow them."""
        self._step: StepControl | None = None
        self._due = math.inf
        """When the round was due; monotonic."""
        self._seen = Seen()
        self._passed_over = False
        """Whether there was one that may lead us when the time is up in which others come."""
        keys = search.group_key_manager
        self._keys = UnhurriedKeys(keys.dht, keys.prefix, keys.group_bits, keys.target_group_size)
        self._keys.find_left_out = self._find_left_out
        self._ask = search._request_join_potential_leaders  # noqa: SLF001 - hivemind has no other way
        self._look, self._lead, self._follow = (
            search.look_for_group,
            search.leader_assemble_group,
            search.follower_assemble_group,
        )
        self._found: dict[StepControl, asyncio.Future[GroupInfo]] = {}
        self._looks = set[asyncio.Task[Any]]()
        self._questions = set[asyncio.Task[None]]()
        search.group_key_manager = self._keys
        search._servicer_type = Leaders(search._servicer_type, self._refuses, self._let_wait)  # noqa: SLF001 - as above
        search._request_join_potential_leaders = self._ask_leaders  # noqa: SLF001 - as above
        search.look_for_group = self.look_for_group
        search.leader_assemble_group, search.follower_assemble_group = self._assemble, self._join

    async def look_for_group(self, step: StepControl) -> GroupInfo | None:
        """In place of hivemind's, which returns only after it has withdrawn our record from the DHT."""
        if step is not self._step:
            self._spent.clear()
            self._hanging = set()  # a new set: a question of the last round may end in this one
        self._step, self._due, self._passed_over = step, math.inf, False
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
        self._due = due = time.monotonic()
        while time.monotonic() - due < (2 if self._may_take_longer else 1) * self._needed:
            done, _ = await asyncio.wait(ends, timeout=NOBODY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if done or (self._nobody_seen_since(due) and await self._company.is_gone(self._hanging)):
                return

    @property
    def _needed(self) -> float:
        """Seconds in which peers in step meet."""
        return float(self._search.min_matchmaking_time + self._search.request_timeout)

    @property
    def _skew(self) -> float:
        return IN_STEP * float(self._search.min_matchmaking_time)

    @property
    def _has_company(self) -> bool:
        """A group is being gathered: its leader waits for as long as it has announced, which began before we were due."""
        return bool(self._search.current_followers or self._search.current_leader)

    @property
    def _may_take_longer(self) -> bool:
        return self._has_company or self._passed_over or bool(self._spent)

    def _nobody_seen_since(self, due: float) -> bool:
        others = self._keys.seen - {self._search.peer_id} - self._company.met
        return self._keys.looked >= due and not others and not self._has_company

    async def _find_left_out(self, found: Collection[PeerID]) -> Callable[[PeerID], bool]:
        others = frozenset(found) - {self._search.peer_id}
        self._seen = replace(self._seen, others=others)
        expected = await self._company.expected(others)
        waits = not self._takes_any() and expected.known and bool(expected.peers)
        may_lead = others.intersection(expected.peers).difference(self._doubtful)
        doubts = not expected.peers or bool(may_lead) or self._has_company or self._is_early
        self._seen = Seen(others, waits, doubts)
        self._passed_over |= any(map(self._is_passed_over, others))
        return self._leaves_out

    def _leaves_out(self, peer: PeerID) -> bool:
        return self._is_passed_over(peer) or self._refuses(peer)

    def _refuses(self, peer: PeerID) -> bool:
        """Whether the peer does not lead us now."""
        return self._is_stranger(peer) or peer in self._spent or self._company.avoids(peer)

    def _is_passed_over(self, peer: PeerID) -> bool:
        """Whether the peer may lead us when the time is up in which others come, and is not asked before."""
        doubted = peer in self._doubtful and self._seen.doubts and not self._takes_any()
        return self._is_stranger(peer) or doubted

    def _is_stranger(self, peer: PeerID) -> bool:
        return self._seen.waits and not self._company.trusts(peer)

    def _let_wait(self, leader: PeerID) -> None:
        self._spent.add(leader)
        self._doubtful.append(leader)
        self._keys.pass_over(leader)
        question = asyncio.create_task(self._ask_whether_it_hangs(leader, self._hanging))
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)

    async def _ask_whether_it_hangs(self, leader: PeerID, hanging: set[PeerID]) -> None:
        if await self._company.hangs(leader, HANGING_SECONDS):
            hanging.add(leader)

    def _takes_any(self, margin: float = 0.0) -> bool:
        """Whether the time is up, but for so many seconds, in which peers in step come."""
        step = self._search.step_control
        expected = get_dht_time() - step.scheduled_time if step else -math.inf
        return max(time.monotonic() - self._due, expected) >= self._needed - margin

    async def _ask_leaders(self, step: StepControl) -> GroupInfo | None:
        """Ask again when hivemind's own has ended because our group was not begun."""
        own = asyncio.current_task()
        while True:
            group: GroupInfo | None = await self._ask(step)
            if group is not None or (own and own.cancelling()):  # which hivemind ignores
                return group

    async def _is_too_few(self, members: Iterable[PeerID], margin: float = 0.0) -> bool:
        """Whether to look on for others than these. `margin` as in `_takes_any`."""
        if self._takes_any(margin):
            return False
        expected = await self._company.expected(self._seen.others)
        return not expected.has_enough(members, all_of_them=self._is_early)

    @property
    def _is_early(self) -> bool:
        """Whether the round is not expected yet: peers in step begin later."""
        step = self._search.step_control
        return bool(step and not step.triggered and get_dht_time() < step.scheduled_time - self._skew)

    async def _assemble(self) -> GroupInfo | None:
        if await self._is_too_few(self._search.current_followers):
            await self._search.leader_disband_group()
            return None
        step = self._search.step_control
        return self._note(step, await self._lead())

    async def _join(self, leader: PeerID, message: averaging_pb2.MessageFromLeader) -> GroupInfo | None:
        step = self._search.step_control
        if wrong := self._is_wrong(leader, message):
            _log.warning("%s is not followed: %s", leader, wrong)
        # a leader like us has looked on for as long as we, and may have begun that earlier
        elif not await self._is_too_few(map(PeerID, message.ordered_peer_ids), self._skew):
            self._doubtful = deque((peer for peer in self._doubtful if peer != leader), KEPT)
            return self._note(step, await self._follow(leader, message))
        self._spent.add(leader)
        self._groups.end(message.group_id[:GROUP_ID_BYTES])  # its members are told that we are not in it
        return None

    def _is_wrong(self, leader: PeerID, message: averaging_pb2.MessageFromLeader) -> str:
        """What is wrong with a group, if anything."""
        if len(message.group_id) != GROUP_ID_BYTES:
            return f"its group has an id of {len(message.group_id)} bytes"
        if not all(map(is_id, message.ordered_peer_ids)):
            return "it names a member by what is no peer's id"
        said = dict(zip(message.ordered_peer_ids, message.gathered, strict=False))  # hivemind compares their lengths
        if len(said) < len(message.ordered_peer_ids) or leader.to_bytes() not in said:
            return "it names a group with a member twice, or without itself"
        if said.get(self._search.peer_id.to_bytes()) != self._search.step_control.data_for_gather:
            return "it says something else of this peer than this has said itself"
        return ""

    def _note(self, step: StepControl, group: GroupInfo) -> GroupInfo:
        if step in self._found and not self._found[step].done():
            self._groups.found(group.group_id, step, group.peer_ids)
            self._found[step].set_result(group)
        else:
            self._groups.end(group.group_id)  # it came too late, and its members are told so
        return group
