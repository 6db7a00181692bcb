"""hivemind's two averagers, made to load a state only once, bounded and checked, and to leave the computer in peace.

Stock behaviour this mends, each shown by a test: loading a state copies whatever arrives, broadcast to our shapes, and
takes the donor's hyperparameters with it; the search for a group asks the DHT without a pause; a process keeps for good
the memory that its largest round took. It must not judge a round; `honest_rounds` does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, AsyncIterator, Final  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.compression import CompressionInfo
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager, dump_optimizer_state, load_optimizer_state
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture
from hivemind.utils.streaming import split_for_streaming

from skep.core.errors import SwarmError
from skep.core.text import Text
from skep.worker.process.memory import give_back, map_large_blocks
from skep.worker.swarm.averager_auth import MembersOnly
from skep.worker.swarm.honest_rounds import HonestRounds

STATE_PART_BYTES: Final = 512 * 1024
"""Of a state that is handed over, in one frame; hivemind's 64 KiB keep both ends busy with frames."""
LOOK_SECONDS: Final = 0.2
"""From one look for leaders of a group to the next."""


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


class HoldsNoMore(DecentralizedAverager):
    """Mixed into an averager, gives memory back to the system when a round is over, or a state was sent or loaded.

    Else its process holds for good what the largest of them took once, and a peer has two such processes.
    """

    def run(self) -> None:
        """The averager's process, from its beginning to its end."""
        map_large_blocks()
        super().run()

    async def _step(self, **kwargs: Any) -> None:
        try:
            await super()._step(**kwargs)
        finally:
            give_back()

    async def _load_state_from_peers(self, **kwargs: Any) -> None:
        try:
            await super()._load_state_from_peers(**kwargs)
        finally:
            give_back()

    async def rpc_download_state(
        self, request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        try:
            async with aclosing(super().rpc_download_state(request, context)) as messages:
                async for message in messages:
                    yield message
        finally:
            give_back()


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


class CheckedGradientAverager(MembersOnly, HoldsNoMore, HonestRounds, LooksUnhurried, StartsBeside, GradientAverager):
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
    MembersOnly, HoldsNoMore, HonestRounds, LooksUnhurried, HandsOverInLargeParts, StartsBeside, TrainingStateAverager
):
    """Averages parameters, and loads a newcomer's state with every tensor checked against our own."""

    _coming: MPFuture | None = None

    def get_current_state(self) -> tuple[Any, Sequence[torch.Tensor], Sequence[CompressionInfo]]:
        """What is handed over to a newcomer, in memory that is shared with the averager's process."""
        metadata, tensors, infos = super().get_current_state()
        for tensor in tensors:
            tensor.share_memory_()  # sending them would do it, and leave the places where they were to the C library
        give_back()
        return metadata, tensors, infos

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
            raise SwarmError(Text("peer.peer_sent_training_state_without"), Text("peer.skep_tries_another_peer"))
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
            Text("peer.peer_sent_state_tensors_where", theirs=len(theirs), ours=len(ours)),
            Text("peer.trains_another_model_under_same"),
        )
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if own.shape != other.shape or own.dtype != other.dtype:
            raise SwarmError(
                Text(
                    "peer.peer_sent_tensor_state_model",
                    number=number,
                    theirs=str(tuple(other.shape)),
                    their_dtype=str(other.dtype),
                    ours=str(tuple(own.shape)),
                    our_dtype=str(own.dtype),
                ),
                Text("peer.trains_another_model_under_same"),
            )
        if not torch.isfinite(other).all():
            raise SwarmError(Text("peer.peer_sent_state_values_not"), Text("peer.skep_tries_another_peer"))


# handler names on the wire are made from class names: under ours, no stock peer would find us
CheckedGradientAverager.__name__ = GradientAverager.__name__
CheckedStateAverager.__name__ = TrainingStateAverager.__name__
