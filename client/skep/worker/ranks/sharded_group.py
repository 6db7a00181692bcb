"""One model that fits no single device, spread over the ranks: each computes a part of every micro-batch with its shards.

The whole model is in the host memory of rank 0, the masters, where the swarm averages it; its device has only its shards.
Sums of gradients are in the shards until they are gathered. All ranks compute each micro-batch in step, so whatever fails
in one of them breaks the group: what the shards had summed up is lost, `lost` says how much, and a group of the ranks that
are left is made from the masters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import torch

from skep.recipes.tensors.batches import Batch
from skep.worker.ranks import orders, rendezvous
from skep.worker.ranks.group import FIRST_SECONDS, LATE_SECONDS, GroupTrainer
from skep.worker.ranks.offload import ShardsOffload
from skep.worker.ranks.others import RankLost
from skep.worker.ranks.sharded_rank import ShardedRank
from skep.worker.training.compute_group import FIRST_SCALE
from skep.worker.training.device import CPU
from skep.worker.training.resource_limits import DryRun, ModelOffload

FAILED: Final = orders.Broken | orders.NoMemory
SHARDED_SECONDS: Final = 8.0
"""How long a rank is waited for in one message: longer than for copies, which wait for each other once a step batch.

Here each message of a pass waits for the slowest rank, which has the lowest priority and may hardly get the processor.
"""


class ShardedTrainer(GroupTrainer):
    """As GroupTrainer, for a model that no device has room for."""

    sharded = True
    _waits = FIRST_SECONDS
    """Until the dry run is over: drivers load code in the first micro-batches."""
    _ready = False
    """Whether all ranks have shards in one group."""
    _held = 0
    """Samples whose gradients only the shards have."""

    _rank: ShardedRank
    """Rank 0's own."""

    def begin(self) -> None:
        self._rank = ShardedRank(self._device, self._recipe, self.model)
        super().begin()

    @property
    def home(self) -> torch.device:
        return CPU

    # --- the same interface as that of one device

    def recompute_activations(self) -> None:
        """From the next group on, which is made before anything is computed."""
        self.checkpointing = True
        self._ready = False

    def dry_run(self, step_batch: int, enough: Callable[[], bool] = lambda: True) -> DryRun:
        with suppress(torch.OutOfMemoryError):  # the run finds out what fits
            # FSDP prepares itself in its first pass, which is not to be timed
            self.add_gradients(self._recipe.example(1), 0.0)
        found = super().dry_run(step_batch, enough)
        # a rank that computes a whole micro-batch while another waits is slow, and not lost
        self._waits, self._ready = max(SHARDED_SECONDS, 2 * self._slowest), False
        return found

    def loss_size(self, size: int) -> int:
        """All ranks compute losses too."""
        return size

    def loss(self, batch: Batch) -> float:
        while True:
            try:
                return self._pass(batch, None)
            except RankLost:
                self._form()

    def collect(self) -> None:
        """Add to `.grad` what the shards have summed up. If that fails, it is lost, and `.grad` stays as it is."""
        if not self._held:
            return
        try:
            self._everyone(self._gather_own, orders.Gather())
        except (RankLost, torch.OutOfMemoryError):
            return  # the next micro-batch forms a group

    def forget(self) -> None:
        super().forget()
        self._rank.discard()
        self._held = 0

    def offload(self, tensors: Callable[[], Iterable[torch.Tensor]]) -> ModelOffload:
        return ShardsOffload(self._device.device, tensors, drop=self.drop, restore=self.restore)

    def drop(self) -> None:
        """Free the memory of the shards. What they have summed up is lost, unless it was collected before."""
        self._lose_held()
        self._ready = False
        self._others.tell(orders.DropShards())
        self._rank.drop()

    def restore(self) -> None:
        """Make the shards again, unless they are there. Raises OutOfMemoryError when a device has no room."""
        if not self._ready:
            self._form()

    # --- one micro-batch

    def _attempt(self, batch: Batch, scale: float) -> float:
        """Raises RankLost, or OutOfMemoryError: then nothing that was not gathered yet is left."""
        self._norm = None
        loss = self._pass(batch, scale)
        if math.isfinite(loss):
            self._held += len(batch)
        return loss

    def _pass(self, batch: Batch, scale: float | None) -> float:
        self._share_parameters()
        order = partial(
            orders.Pass,
            samples=len(batch),
            scale=scale,
            threads=torch.get_num_threads(),
            present=self._present(),
        )
        first, *parts = self._parts(batch)
        for rank, part in zip(self._others.ranks, parts, strict=True):
            self._others.tell(order(part), [rank])
        found = self._everyone(partial(self._own_pass, order(first)))
        computed = [each for each in found if isinstance(each, orders.Computed)]
        self._meetings = 0
        self._take_times(computed)
        return computed[0].loss

    def _own_pass(self, order: orders.Pass) -> orders.Answer:
        answer = self._rank.obey(order)
        self.meanwhile()
        return answer

    def _take_times(self, computed: Sequence[orders.Computed]) -> None:
        """Parts stay equal: every rank is as fast as the slowest, for which it waits."""
        if self.kind == "cpu":
            self._beyond += max(each.spent for each in computed) - computed[0].spent

    def _share_parameters(self) -> None:
        if not self._ready:
            self._form()
        marks = self._marks()
        if marks != self._shared:
            self._everyone(partial(self._rank.obey, orders.LoadTrained()), orders.LoadTrained())
            self._shared = marks

    def _gather_own(self) -> orders.Answer:
        answer = self._rank.obey(orders.Gather())
        if not isinstance(answer, FAILED):
            self._held = 0  # all of it is in `.grad`, whatever becomes of the others
        return answer

    def _everyone(self, own: Callable[[], orders.Answer], order: orders.Order | None = None) -> Sequence[orders.Answer]:
        """Do `own` in rank 0 while the others do the same, which `order` tells them; the answers, rank 0's first.

        Raises RankLost, and OutOfMemoryError when one of them had no memory: then there is no group any more.
        """
        if order is not None:
            self._others.tell(order)
        begun, self._ready = time.monotonic(), False
        try:
            mine = own()
            # after a wait of rank 0 that was in vain: the others wait as long, from about the same time on
            left = self._waits - (time.monotonic() - begun if isinstance(mine, orders.Broken) else 0.0)
            found = [mine, *self._others.answers(LATE_SECONDS + max(0.0, left)).values()]
            if any(isinstance(answer, orders.NoMemory) for answer in found):
                self._meetings = 0
                raise torch.OutOfMemoryError(self.name)
            if any(isinstance(answer, orders.Broken) for answer in found):
                raise RankLost
            self._ready = True
        finally:
            if not self._ready:
                self._lose_held()
        return found

    # --- the group

    def _count_lost(self) -> None:
        self._lose_held()
        super()._count_lost()

    def _lose_held(self) -> None:
        self._lost += self._held
        self._held = 0

    def _begin_anew(self) -> None:
        self._rank.drop()
        self._meet()
        factor = self.loss_scale.factor if self.loss_scale else FIRST_SCALE
        order, marks = orders.Shard(self.checkpointing, factor, self._building.offload), self._marks()
        self._everyone(partial(self._rank.obey, order), order)
        self._shared = marks
        self.loss_scale = self._rank.loss_scale

    def _backend(self) -> str:
        return rendezvous.BOTH if self._by_nccl else rendezvous.GLOO
