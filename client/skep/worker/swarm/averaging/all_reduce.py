"""One all-reduce among the members of a group, and what this peer observed of it.

What the members say of themselves comes through the leader, who may say anything. So each also says its epoch in its
first message to every other; only of two that reduce nothing, and so exchange none, the leader's word counts.

Stock behaviour that this corrects, each covered by a test: a groupmate that has died, that hangs, also while it sends, or
that says that the group is over, is waited for as long as a silent one. With a search for a group that does not end
(see `search`), two peers that once missed each other's round miss each other in every later one: each comes when the
other has given up, and waits so long that it is late for the next round itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import achain, as_aiter

from skep.worker.swarm.averaging.groups import Company, as_message, from_message
from skep.worker.swarm.averaging.parts import UnlikeOurs, check, checked
from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.returned import BoundedReturns
from skep.worker.swarm.averaging.robust import Combination
from skep.worker.swarm.rounds import RoundFacts

_log = logging.getLogger(__name__)

PATIENCE: Final = 0.6
"""Within this part of the time for a part of its data a groupmate has to answer a question, unless data moves; hence it
is known before that time is up whether it hangs. At least LEAST_PATIENCE, since a busy uplink delays an answer too."""
LEAST_PATIENCE: Final = 2.0
REFUSED_SECONDS: Final = 1.0
"""How long a groupmate that has refused our data, or that cannot be dialled, may take to send its own."""


class Used(NamedTuple):
    """What became of an all-reduce's result; `moved` only where this peer reduces nothing.

    `moved`: it differs from our own tensors. `refused`: it was not used, because of its values or ours.
    """

    moved: bool = False
    refused: bool = False


class PromptAllReduce(AllReduceRunner):
    """Waits for no groupmate that is lost, and not for long for the data of one that refuses ours.

    `epoch` is the one that this peer brings to the round. `weights` and `epochs` are what groupmates have claimed
    themselves, by their authenticated ids.
    """

    tensor_part_reducer: CheckedReducer
    tensor_part_container: BoundedReturns

    def __init__(
        self, *args: Any, company: Company, combination: Combination, epoch: int | None = None, **kwargs: Any
    ) -> None:
        self._company, self._combination, self._epoch = company, combination, epoch
        self.weights: dict[PeerID, float] = {}
        self.epochs: dict[PeerID, int] = {}
        self._answered = set[PeerID]()
        self._losses: dict[PeerID, asyncio.Task[None]] = {}
        self._left = set[asyncio.Task[None]]()
        super().__init__(*args, **kwargs)
        container, index = self.tensor_part_container, self.ordered_peer_ids.index(self.peer_id)
        self._sizes = [[len(part) for part, _ in of_peer] for of_peer in container._input_parts_by_peer]  # noqa: SLF001 - hivemind has no other way
        container.__class__ = BoundedReturns  # hivemind makes it in its constructor
        counts = self.weight > 0 and (combination.usual is not None or container.num_parts_by_peer[index] > 0)
        parts = container._input_parts_by_peer if counts else ()  # noqa: SLF001 - as above
        self._own_parts = [part for of_peer in parts for part, _ in of_peer]
        self.tensor_part_reducer.finished.set()  # hivemind's own is not used
        before = sum(container.num_parts_by_peer[:index])
        combination.begin()
        shapes = tuple(part.shape for part in self.parts_for_local_averaging)
        self.tensor_part_reducer = CheckedReducer(shapes, self.sender_peer_ids, combination, before)

    async def run(self) -> AsyncIterator[torch.Tensor]:
        if self._own_parts:
            await asyncio.get_running_loop().run_in_executor(None, self._measure)
        try:
            async with aclosing(super().run()) as changes:
                async for change in changes:
                    yield change
        finally:
            for loss in self._losses.values():
                loss.cancel()

    def _measure(self) -> None:
        """Our own parts, before any is sent."""
        own, self._own_parts = norms_of(self._own_parts), []
        self._combination.see_own(own)
        if usual := self._combination.usual:
            limits = usual.begin(own, self._sizes)
            self.tensor_part_container.bound(usual, limits, self.ordered_peer_ids.index(self.peer_id))

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        first = await anext(stream)
        self.weights[context.remote_id] = first.weight
        self._hear(context.remote_id, first)
        answers = 0
        async for answer in self._told(super().rpc_aggregate_part(achain(as_aiter(first), stream), context)):
            answers += answer.code == averaging_pb2.AVERAGED_PART
            if answers == self.tensor_part_reducer.num_parts:
                self._answered.add(context.remote_id)
            yield answer

    async def _accumulate_parts_streaming(
        self, stream: AsyncGenerator[averaging_pb2.AveragingData, None], sender_index: int
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        async with aclosing(self._checked(stream, self.sender_peer_ids[sender_index])) as parts:
            async for answer in super()._accumulate_parts_streaming(parts, sender_index):
                yield answer

    async def _checked(
        self, stream: AsyncGenerator[averaging_pb2.AveragingData, None], sender: PeerID
    ) -> AsyncGenerator[averaging_pb2.AveragingData, None]:
        sizes = [shape.numel() for shape in self.tensor_part_reducer.part_shapes]
        try:
            async with aclosing(checked(stream, sizes)) as parts:
                async for part in parts:
                    yield part
        except UnlikeOurs:
            self.tensor_part_reducer.unlike.add(sender)
            raise

    async def _ban_sender(self, peer_id: PeerID) -> None:
        """As hivemind's, which also bans a peer that closes its stream once it has all answers."""
        # among others the round goes on without it; those that have got nothing from it would not avoid it, and be in
        # another group than those that have
        if self._is_of_two and peer_id in self.tensor_part_reducer.unlike:
            self._company.avoid(peer_id, briefly=True)
        if peer_id not in self._answered:
            await super()._ban_sender(peer_id)

    @property
    def _is_of_two(self) -> bool:
        return len(self.ordered_peer_ids) <= 2  # noqa: PLR2004 - as its name says

    async def _generate_input_for_peer(self, peer_index: int) -> AsyncIterator[averaging_pb2.AveragingData]:
        async for message in self._told(super()._generate_input_for_peer(peer_index)):
            yield message

    async def _told(
        self, messages: AsyncGenerator[averaging_pb2.AveragingData, None]
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """Say our epoch in the first message."""
        told = as_message(self._epoch)
        async with aclosing(messages):
            async for message in messages:
                message.peer_id, told = told, b""
                yield message

    def _hear(self, peer: PeerID, message: averaging_pb2.AveragingData) -> None:
        if (epoch := from_message(message.peer_id)) is not None:
            self.epochs.setdefault(peer, epoch)

    def hear_through_leader(self, claims: Mapping[PeerID, int | None]) -> None:
        """What the leader passes on counts between two peers that reduce nothing: they exchange no message."""
        shares = dict(zip(self.ordered_peer_ids, self.peer_fractions, strict=True))
        if not shares[self.peer_id]:
            told = {peer: epoch for peer, epoch in claims.items() if epoch is not None and not shares[peer]}
            self.epochs |= told

    def _get_peer_stub(self, peer: PeerID) -> Any:
        sizes = self._sizes[self.ordered_peer_ids.index(peer)]
        return _Listening(super()._get_peer_stub(peer), sizes, partial(self._hear, peer))

    def _loss_of(self, peer: PeerID) -> asyncio.Task[None]:
        """Ends once the peer is lost."""
        if peer not in self._losses:
            self._losses[peer] = asyncio.create_task(self._until_lost(peer))
        return self._losses[peer]

    async def _until_lost(self, peer: PeerID) -> None:
        patience = max(LEAST_PATIENCE, PATIENCE * self.sender_timeout)
        while True:
            before = self._moved_by(peer)
            await self._company.until_lost(peer, patience)
            if self._moved_by(peer) == before:
                return

    def _moved_by(self, peer: PeerID) -> tuple[int, int]:
        """Parts that have come back from a peer, and parts that it has sent for what we reduce."""
        container = self.tensor_part_container
        returned = container._outputs_registered_by_peer[self.ordered_peer_ids.index(peer)]  # noqa: SLF001 - hivemind has no other way
        sends = peer in self.sender_peer_ids
        sent = self.tensor_part_reducer.num_parts_received[self.sender_peer_ids.index(peer)] if sends else 0
        return returned, sent

    async def _communicate_with_peer(self, peer_id: PeerID) -> None:
        if peer_id == self.peer_id:
            await super()._communicate_with_peer(peer_id)
            return
        talk, loss = asyncio.create_task(super()._communicate_with_peer(peer_id)), self._loss_of(peer_id)
        self._left.add(talk)
        talk.add_done_callback(self._ended)
        try:
            await asyncio.wait({talk, loss}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = not talk.done()
            talk.cancel()  # not waited for: p2pd opens a stream to a hanging peer for half a minute
        error = None if lost else talk.exception()
        if lost:
            self.tensor_part_container.register_failed_reducer(self.ordered_peer_ids.index(peer_id))
        elif isinstance(error, UnlikeOurs) and peer_id in self.sender_peer_ids:
            _log.warning("%s was banned from a round: %s", peer_id, error)
            self._company.avoid(peer_id, briefly=self._is_of_two)
            await super()._ban_sender(peer_id)  # also if it has all answers: what it returns is no good
            return
        elif error:
            await asyncio.wait({loss}, timeout=REFUSED_SECONDS)
        if lost or error:
            await self._ban_unless_it_sends(peer_id)

    def _ended(self, talk: asyncio.Task[None]) -> None:
        self._left.discard(talk)
        if not talk.cancelled():
            talk.exception()  # hivemind has noted it

    async def _handle_missing_senders(self) -> None:
        others = [peer for peer in self.sender_peer_ids if peer != self.peer_id]
        waits = [asyncio.create_task(self._ban_when_lost(peer)) for peer in others]
        try:
            await super()._handle_missing_senders()
            await self.tensor_part_reducer.finished.wait()  # one that has begun to send may be lost later
        finally:
            for wait in waits:
                wait.cancel()

    async def _ban_when_lost(self, peer: PeerID) -> None:
        await asyncio.wait({self._loss_of(peer)})
        await self._ban_sender(peer)

    async def _ban_unless_it_sends(self, peer_id: PeerID) -> None:
        if peer_id in self.sender_peer_ids and peer_id not in self.active_senders:
            await self._ban_sender(peer_id)


class _Listening:
    """Another peer's calls; `hear` gets its answers, parts of these `sizes`.

    The stream is closed once all of them have come (see `streams`).
    """

    def __init__(self, stub: Any, sizes: Sequence[int], hear: Callable[[averaging_pb2.AveragingData], None]) -> None:
        self._stub, self._sizes, self._hear = stub, sizes, hear

    async def rpc_aggregate_part(
        self, parts: AsyncIterator[averaging_pb2.AveragingData]
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        return self._heard(await self._stub.rpc_aggregate_part(parts))

    async def _heard(
        self, answers: AsyncGenerator[averaging_pb2.AveragingData, None]
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        async with aclosing(answers):
            for size in self._sizes:
                if (answer := await anext(answers, None)) is None:
                    return
                self._hear(answer)
                if answer.code == averaging_pb2.AVERAGED_PART:
                    check(answer.tensor_part, size)
                yield answer


@torch.no_grad()
def norms_of(parts: Sequence[torch.Tensor]) -> list[float]:
    return [float(part.norm()) for part in parts]


def examine(runner: PromptAllReduce, used: Used, helpers: Container[PeerID] = ()) -> RoundFacts:
    """The facts of a finished all-reduce, from what was received and not from the size of its group.

    `helpers` average and contribute nothing.
    """
    others = [peer for peer in runner.ordered_peer_ids if peer != runner.peer_id]
    reducer, weights, idle = runner.tensor_part_reducer, runner.weights, False
    if reducer.num_parts:
        received = dict(zip(runner.sender_peer_ids, reducer.num_parts_received, strict=True))
        heard = [
            peer
            for peer in others
            if received.get(peer) == reducer.num_parts
            and peer not in runner.banned_senders
            and peer not in reducer.left_out
            and weights.get(peer, 0.0) > 0
        ]
        missing = [peer for peer in others if peer in runner.banned_senders or peer in reducer.left_out]
        senders = [peer for peer in others if peer in received]
        idle = bool(senders) and all(
            received[peer] == reducer.num_parts and peer not in missing and weights.get(peer) == 0 for peer in senders
        )
    else:
        # no peer sends to one that reduces nothing: count the reducers if they returned all parts, and not our own
        # values. A reducer of weight 0 is counted too, if another peer has weight: the protocol tells us no weights
        whole = runner.tensor_part_container.failed_size == 0 and used.moved
        trainers = [peer for peer in others if peer not in helpers]
        # if helpers alone reduce, what they returned is the trainers'
        shares = dict(zip(runner.ordered_peer_ids, runner.peer_fractions, strict=True))
        reducers = [peer for peer in trainers if shares[peer] > 0] or trainers
        heard, missing = (reducers, []) if whole else ([], reducers)
    return RoundFacts(
        group_size=len(runner.ordered_peer_ids),
        heard=tuple(str(peer) for peer in heard),
        missing=tuple(str(peer) for peer in missing),
        # the parts that we reduce contain another's data if one of them sent all; those that came back, their reducer's
        complete=runner.tensor_part_container.failed_size == 0 and bool(heard),
        arrived=runner.tensor_part_container.failed_size == 0,
        refused=used.refused,
        idle=idle,
        epochs={str(peer): epoch for peer, epoch in runner.epochs.items()},
        weights={str(peer): weights[peer] for peer in heard if reducer.num_parts},
    )


def all_of(seen: Sequence[RoundFacts]) -> RoundFacts:
    """The facts of a round of several all-reduces: a peer counts as heard only if it was heard in each."""
    first = seen[0]
    return RoundFacts(
        group_size=first.group_size,
        heard=tuple(peer for peer in first.heard if all(peer in each.heard for each in seen)),
        missing=tuple(sorted({peer for each in seen for peer in each.missing})),
        complete=all(each.complete for each in seen),
        arrived=all(each.arrived for each in seen),
        refused=any(each.refused for each in seen),
        idle=all(each.idle for each in seen),
        epochs=first.epochs,
        weights=first.weights,
    )
