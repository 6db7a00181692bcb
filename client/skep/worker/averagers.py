"""hivemind's two averagers, made to tell the truth about a round and to load a state only once, bounded and checked.

Stock behaviour this mends, each shown by a test: a round whose groupmate never sent anything "succeeds" with a group of
two; loading a state copies whatever arrives, broadcast to our shapes, and takes the donor's hyperparameters with it.
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
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.compression import CompressionInfo
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager, dump_optimizer_state, load_optimizer_state
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture
from hivemind.utils.asyncio import achain, as_aiter
from hivemind.utils.streaming import split_for_streaming

from skep.core.errors import SwarmError
from skep.worker.members import MembersOnly
from skep.worker.rounds import RoundFacts

STATE_PART_BYTES: Final = 512 * 1024
"""Of a state that is handed over, in one frame; hivemind's 64 KiB keep both ends busy with frames."""
LOOK_SECONDS: Final = 0.2
"""From one look for leaders of a group to the next."""
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


class StartsBeside(DecentralizedAverager):
    """Mixed into an averager, does not wait until its process is there: `wait_until_ready` does."""

    def run_in_background(self, await_ready: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002 - hivemind's
        super().run_in_background(await_ready=False)


class UnhurriedKeys(GroupKeyManager):
    """Where the averagers that look for a group are found: not looked up again at once when there are none."""

    _looked = float("-inf")

    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:  # noqa: FBT001 - hivemind's
        await asyncio.sleep(max(0.0, self._looked + LOOK_SECONDS - time.monotonic()))
        self._looked = time.monotonic()
        found: list[tuple[PeerID, float]] = await super().get_averagers(group_key, only_active)
        return found


class LooksUnhurried(DecentralizedAverager):
    """Mixed into an averager, looks for a group a few times a second.

    hivemind looks as fast as the DHT answers, from the beginning of the search until the group is there: on one computer
    or in one house hundreds of times a second, in three processes, on the cores that train.
    """

    async def _step(self, **kwargs: Any) -> None:
        search = self._matchmaking
        keys = search.group_key_manager
        if not isinstance(keys, UnhurriedKeys):
            search.group_key_manager = UnhurriedKeys(keys.dht, keys.prefix, keys.group_bits, keys.target_group_size)
        await super()._step(**kwargs)


class HandsOverInLargeParts(DecentralizedAverager):
    """Mixed into an averager, sends a state in fewer and larger frames; any peer puts frames of any size together."""

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        if not self.allow_state_sharing:
            return
        metadata, tensors, infos = await self._get_current_state_from_host_process()
        infos = infos or [CompressionInfo.from_tensor(tensor, key=key) for key, tensor in enumerate(tensors)]
        for tensor, info in zip(tensors, infos, strict=True):
            whole = self.state_compression.compress(tensor, info, allow_inplace=False)
            for part in split_for_streaming(whole, STATE_PART_BYTES):
                yield averaging_pb2.DownloadData(tensor_part=part, metadata=metadata)
                metadata = None


class HonestGradientAverager(MembersOnly, HonestRounds, LooksUnhurried, StartsBeside, GradientAverager):
    """Averages gradients; counts local work in step batches, so that a part of one weighs what it holds.

    Gradients arrive scaled by micro-batch / step batch, so their sum over `local_times_accumulated` step batches
    (a fraction for an unfinished one) is the exact mean over samples. Without `reuse_grad_buffers` they are taken out of
    `.grad` as they are counted, so that nobody else ever clears it.
    """

    step_batch: int = 1

    @torch.no_grad()
    def accumulate_grads_(self, batch_size: int) -> None:
        """Count `batch_size` samples, whose gradients lie in `.grad` already."""
        self.local_samples_accumulated += batch_size
        self.local_times_accumulated += batch_size / self.step_batch
        if not self.reuse_grad_buffers:
            for gradient, total in zip(self._grads_from_parameters(), self._grad_accumulators(), strict=True):
                total.add_(gradient.to(total.device))
                gradient.zero_()

    @property
    def local_accumulators(self) -> tuple[torch.Tensor, ...]:
        """Where gradients wait beside `.grad`; nowhere with `reuse_grad_buffers`."""
        return self._local_accumulators or ()

    def catch_up(self, within: float) -> None:  # noqa: ARG002 - others ask the swarm
        """The parameters were replaced by the swarm's: forget what was computed with the old ones."""
        self.reset_accumulated_grads_()

    @torch.no_grad()
    def reset_accumulated_grads_(self) -> None:
        """Forget what was counted, and what lies in `.grad` and was not."""
        super().reset_accumulated_grads_()
        for gradient in self._grads_from_parameters():
            gradient.zero_()


class CheckedStateAverager(
    MembersOnly, HonestRounds, LooksUnhurried, HandsOverInLargeParts, StartsBeside, TrainingStateAverager
):
    """Averages parameters, and loads a newcomer's state with every tensor checked against our own."""

    _coming: MPFuture | None = None

    def ask_for_state(self, within: float) -> None:
        """Have the newest state sent, within so many seconds, while something else is done; `load_checked` takes it."""
        self._coming = self._asked(within)

    def _asked(self, within: float) -> MPFuture:
        return DecentralizedAverager.load_state_from_peers(self, wait=False, timeout=within)

    def load_checked(self, within: float) -> int | None:
        """Download the newest state once, unless it was asked for already; check it, apply it.

        Returns its epoch, or None when no peer offered one that is not older than ours.
        Raises SwarmError when what arrived is not a state of this model.
        """
        coming, self._coming = self._coming or self._asked(within), None
        loaded = coming.result(within)
        if loaded is None:
            return None
        metadata, tensors = loaded
        epoch = metadata.get("epoch") if isinstance(metadata, dict) else None
        if not isinstance(epoch, int) or isinstance(epoch, bool):
            raise SwarmError("A peer sent a training state without an epoch.", "skep tries another peer.")
        if epoch < self.local_epoch:
            return None
        self.adopt(epoch, tensors)
        return epoch

    def adopt(self, epoch: int, tensors: Sequence[torch.Tensor]) -> None:
        """Make a state of `epoch` ours: parameters, then the optimizer's, in hivemind's order. Raises SwarmError."""
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        parameters += list(self.extra_tensors)
        own_metadata, own_tensors = dump_optimizer_state(self.optimizer)
        check_tensors([*parameters, *own_tensors], tensors)
        count = len(parameters)
        with torch.no_grad(), self.lock_averaged_tensors:
            # our own hyperparameters: a donor may hand over tensors, never a learning rate
            load_optimizer_state(self.optimizer, own_metadata, tensors[count:])
            for parameter, loaded in zip(parameters, tensors[:count], strict=True):
                parameter.copy_(loaded, non_blocking=True)
        if self.offload_optimizer:
            self._apply_optimizer_parameters_()
        if not self.reuse_tensors:
            self._load_local_tensors_into_averager_()
        self.local_epoch = epoch
        self._update_scheduler()


def check_tensors(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> None:
    """Raise SwarmError unless `theirs` match `ours` in number, shapes and dtypes, and are finite."""
    if len(ours) != len(theirs):
        raise SwarmError(
            f"A peer sent a state of {len(theirs)} tensors where this model has {len(ours)}.",
            "It trains another model under the same name; tell the project's publisher.",
        )
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if own.shape != other.shape or own.dtype != other.dtype:
            raise SwarmError(
                f"A peer sent tensor {number} of its state as {tuple(other.shape)} {other.dtype}, "
                f"this model has {tuple(own.shape)} {own.dtype}.",
                "It trains another model under the same name; tell the project's publisher.",
            )
        if not torch.isfinite(other).all():
            raise SwarmError("A peer sent a state with values that are not finite.", "skep tries another peer.")


# handler names on the wire are made from class names: under ours, no stock peer would find us
HonestGradientAverager.__name__ = GradientAverager.__name__
CheckedStateAverager.__name__ = TrainingStateAverager.__name__
