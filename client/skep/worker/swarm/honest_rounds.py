"""Rounds of hivemind's averagers, with the truth about each: who was heard, and whether it was whole.

Stock behaviour this mends, shown by a test: a round whose groupmate never sent anything "succeeds" with a group of two.
It must not decide what a round was worth; `rounds` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, AsyncIterator, Final  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.group_info import GroupInfo
from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import achain, as_aiter

from skep.worker.swarm.rounds import RoundFacts

ROUNDING: Final = 1e-5
"""Relative change of a result below which it is our own tensor, rounded on its way."""


class Gathered(dict[Any, Any]):
    """What hivemind returns for a round (peer id -> gathered data), with the facts of it attached."""

    facts: RoundFacts


class HonestRounds(DecentralizedAverager):
    """Mixed into an averager, attaches RoundFacts to the result of each of its rounds."""

    _incoming_weights: dict[bytes, dict[Any, float]]
    _seen: list[RoundFacts]
    """Of each all-reduce of the round under way; a round may have several."""

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """A groupmate sends its part: note the weight it claims, under its authenticated id."""
        first = await anext(stream)
        self._weights_of(first.group_id)[context.remote_id] = first.weight
        async for message in super().rpc_aggregate_part(achain(as_aiter(first), stream), context):
            yield message

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Gathered:
        self._seen = []
        try:
            gathered = Gathered(await super()._aggregate_with_group(group_info, min_vector_size, **kwargs))
            gathered.facts = all_of(self._seen)
            return gathered
        finally:
            self._forget_weights(group_info.group_id)

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[torch.Tensor], group_info: GroupInfo, group_id: bytes | None = None, **kwargs: Any
    ) -> None:
        own_id = group_info.group_id if group_id is None else group_id
        before = magnitude(tensors)
        await super()._run_allreduce_inplace_(tensors, group_info, group_id, **kwargs)
        moved = abs(magnitude(tensors) - before) > ROUNDING * before
        self._seen.append(examine(self._running_groups[own_id].result(), self._weights_of(own_id), moved=moved))

    def _weights_of(self, group_id: bytes) -> dict[Any, float]:
        # made on first use, in the averager's own process, because hivemind's constructor is the one that forks
        if not hasattr(self, "_incoming_weights"):
            self._incoming_weights = defaultdict(dict)
        return self._incoming_weights[group_id]

    def _forget_weights(self, group_id: bytes) -> None:
        self._weights_of(group_id)
        for each in [key for key in self._incoming_weights if key.startswith(group_id)]:
            del self._incoming_weights[each]


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
