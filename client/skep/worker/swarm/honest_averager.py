"""What both averagers of skep's do beside hivemind's: admit the invited only, tell the truth of a round, be sparing.

A request is judged by the id its connection was authenticated under, and by the invitation for that id (`auth`).

Stock behaviour this mends, each shown by a test: a round whose groupmate never sent anything "succeeds" with a group of two;
the search for a group asks the DHT without a pause; a process keeps for good the memory that its largest round took.
It must not decide what a round was worth; `rounds` does.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, AsyncIterator, Final  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllreduceException, AllReduceRunner
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.compression import CompressionInfo
from hivemind.dht import DHT
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import achain, as_aiter
from hivemind.utils.streaming import split_for_streaming

from skep.worker.process.memory import give_back, map_large_blocks
from skep.worker.swarm.auth import AdmissionList, Membership
from skep.worker.swarm.rounds import RoundFacts

ROUNDING: Final = 1e-5
"""Relative change of a result below which it is our own tensor, rounded on its way."""
STATE_PART_BYTES: Final = 512 * 1024
"""Of a state that is handed over, in one frame; hivemind's 64 KiB keep both ends busy with frames."""
LOOK_SECONDS: Final = 0.2
"""From one look for leaders of a group to the next."""


class Gathered(dict[Any, Any]):
    """What hivemind returns for a round (peer id -> gathered data), with the facts of it attached."""

    facts: RoundFacts


class UnhurriedKeys(GroupKeyManager):
    """Where the averagers that look for a group are found: not looked up again at once when there are none.

    hivemind looks as fast as the DHT answers, from the beginning of the search until the group is there: on one computer
    or in one house hundreds of times a second, in three processes, on the cores that train.
    """

    _looked = float("-inf")

    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:  # noqa: FBT001 - hivemind's
        await asyncio.sleep(max(0.0, self._looked + LOOK_SECONDS - time.monotonic()))
        self._looked = time.monotonic()
        found: list[tuple[PeerID, float]] = await super().get_averagers(group_key, only_active)
        return found


class HonestAverager(DecentralizedAverager):
    """Mixed into an averager before hivemind's class. `membership` is None in open projects, where anybody is admitted.

    A state is sent in fewer and larger frames than stock's; any peer puts frames of any size together. Memory is given
    back to the system when a round is over, or a state was sent or loaded: a peer has two such processes.
    """

    def __init__(self, *args: Any, dht: DHT, membership: Membership | None = None, **kwargs: Any) -> None:
        # before hivemind's constructor, which forks: these are used in the averager's own process
        self._roll = AdmissionList(membership, dht) if membership else None
        self._incoming_weights: dict[bytes, dict[Any, float]] = defaultdict(dict)
        self._seen: list[RoundFacts] = []
        """Of each all-reduce of the round under way; a round may have several."""
        super().__init__(*args, dht=dht, **kwargs)

    # --- the averager's process

    def run_in_background(self, await_ready: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002 - hivemind's
        """Does not wait until the process is there: `wait_until_ready` does."""
        super().run_in_background(await_ready=False)

    def run(self) -> None:
        """The averager's process, from its beginning to its end."""
        map_large_blocks()
        super().run()

    # --- who is admitted

    async def _admits(self, peer: PeerID, *, averaging: bool = True) -> bool:
        return self._roll is None or await self._roll.admits(peer, averaging=averaging)

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        if not await self._admits(context.remote_id):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        async for message in super().rpc_join_group(request, context):
            yield message

    async def _check_group(self, group_info: GroupInfo) -> None:
        """A leader could name a stranger as a groupmate: then nothing is sent to anybody."""
        for peer in group_info.peer_ids:
            if peer != self.peer_id and not await self._admits(peer):
                raise AllreduceException(f"{peer} is in the group and not invited")

    # --- a state handed over, or loaded

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        if not self.allow_state_sharing or not await self._admits(context.remote_id, averaging=False):
            return
        metadata, tensors, infos = await self._get_current_state_from_host_process()
        infos = infos or [CompressionInfo.from_tensor(tensor, key=key) for key, tensor in enumerate(tensors)]
        try:
            for tensor, info in zip(tensors, infos, strict=True):
                whole = self.state_compression.compress(tensor, info, allow_inplace=False)
                for part in split_for_streaming(whole, STATE_PART_BYTES):
                    yield averaging_pb2.DownloadData(tensor_part=part, metadata=metadata)
                    metadata = None
        finally:
            give_back()

    async def _load_state_from_peers(self, **kwargs: Any) -> None:
        try:
            await super()._load_state_from_peers(**kwargs)
        finally:
            give_back()

    # --- a round

    async def _step(self, **kwargs: Any) -> None:
        search = self._matchmaking
        keys = search.group_key_manager
        if not isinstance(keys, UnhurriedKeys):
            search.group_key_manager = UnhurriedKeys(keys.dht, keys.prefix, keys.group_bits, keys.target_group_size)
        again = asyncio.create_task(self._roll.publish_again()) if self._roll else None
        try:
            await super()._step(**kwargs)
        finally:
            if again:
                again.cancel()
            give_back()

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """A groupmate sends its part: note the weight it claims, under its authenticated id."""
        if not await self._admits(context.remote_id):
            yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        first = await anext(stream)
        self._incoming_weights[first.group_id][context.remote_id] = first.weight
        async for message in super().rpc_aggregate_part(achain(as_aiter(first), stream), context):
            yield message

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Gathered:
        await self._check_group(group_info)
        self._seen = []
        try:
            gathered = Gathered(await super()._aggregate_with_group(group_info, min_vector_size, **kwargs))
            gathered.facts = all_of(self._seen)
            return gathered
        finally:
            for each in [key for key in self._incoming_weights if key.startswith(group_info.group_id)]:
                del self._incoming_weights[each]

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[torch.Tensor], group_info: GroupInfo, group_id: bytes | None = None, **kwargs: Any
    ) -> None:
        own_id = group_info.group_id if group_id is None else group_id
        before = magnitude(tensors)
        await super()._run_allreduce_inplace_(tensors, group_info, group_id, **kwargs)
        moved = abs(magnitude(tensors) - before) > ROUNDING * before
        self._seen.append(examine(self._running_groups[own_id].result(), self._incoming_weights[own_id], moved=moved))


@torch.no_grad()
def magnitude(tensors: Sequence[torch.Tensor]) -> float:
    return float(sum(tensor.abs().sum(dtype=torch.float64) for tensor in tensors))


def examine(runner: AllReduceRunner, weights: dict[Any, float], *, moved: bool) -> RoundFacts:
    """Judge a finished all-reduce by what was received, never by the size of its group.

    `weights` are what each other peer claimed when it sent to us; `moved` says whether the result differs from our own.
    """
    others = [peer for peer in runner.ordered_peer_ids if peer != runner.peer_id]
    reducer = runner.tensor_part_reducer
    if reducer.num_parts:
        received = dict(zip(runner.sender_peer_ids, reducer.num_parts_received, strict=True))
        heard = [
            peer
            for peer in others
            if received.get(peer) == reducer.num_parts
            and peer not in runner.banned_senders
            and weights.get(peer, 0.0) > 0
        ]
        missing = [peer for peer in others if peer in runner.banned_senders]
    else:
        # nobody sends to a peer that reduces nothing: believe the reducers that gave back every part, and not our own
        whole = runner.tensor_part_container.failed_size == 0 and moved
        reducers = [peer for peer in others if runner.peer_fractions[runner.ordered_peer_ids.index(peer)] > 0]
        heard, missing = (reducers, []) if whole else ([], reducers)
    return RoundFacts(
        group_size=len(runner.ordered_peer_ids),
        heard=tuple(str(peer) for peer in heard),
        missing=tuple(str(peer) for peer in missing),
        complete=runner.tensor_part_container.failed_size == 0 and not runner.banned_senders,
    )


def all_of(seen: Sequence[RoundFacts]) -> RoundFacts:
    """The facts of a round of several all-reduces: only who was heard in each of them was heard."""
    first = seen[0]
    return RoundFacts(
        group_size=first.group_size,
        heard=tuple(peer for peer in first.heard if all(peer in each.heard for each in seen)),
        missing=tuple(sorted({peer for each in seen for peer in each.missing})),
        complete=all(each.complete for each in seen),
    )
