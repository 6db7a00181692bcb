"""What each rank of a sharded model does when all are told to, rank 0 included, which alone has the masters.

A rank in which something fails drops its shards and leaves the group: the others, which wait for it in a collective,
learn it at once. No error leaves a part of a model behind, because the next group makes new shards.
"""

from __future__ import annotations

import gc
import math
import time
import traceback
from collections.abc import Callable
from functools import partial

from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from skep.recipes.contract import OpenRecipe
from skep.worker.ranks import orders, rendezvous
from skep.worker.ranks.collectives import is_loss_of_own_device
from skep.worker.ranks.sharding import ShardedModel
from skep.worker.training.compute_group import LossScale
from skep.worker.training.device import TrainingDevice
from skep.worker.training.device_errors import is_lack_of_memory


class ShardedRank:
    """The shards of one rank on its device; `masters`, the whole model in the host's memory, in rank 0."""

    def __init__(self, device: TrainingDevice, recipe: OpenRecipe, masters: nn.Module | None = None) -> None:
        self._device, self._recipe, self._masters = device, recipe, masters
        self._model: ShardedModel | None = None

    def obey(self, order: orders.Sharded) -> orders.Answer:
        """Do what all ranks were told. Raises RuntimeError when the device is lost."""
        match order:
            case orders.Shard():
                answer = _attempt(partial(self._make, order))
            case orders.Pass():
                answer = _attempt(partial(self._compute, order))
            case orders.LoadTrained():
                answer = _attempt(self._load_trained)
            case orders.Gather():
                answer = _attempt(self._gather)
        if isinstance(answer, orders.Broken | orders.NoMemory):
            # here, where the error is gone, whose frames held the shards
            self.drop()
            rendezvous.leave()
        return answer

    @property
    def loss_scale(self) -> LossScale | None:
        return None if self._model is None else self._model.loss_scale

    def discard(self) -> None:
        """Forget what the shards have summed up."""
        if self._model is not None:
            self._model.discard_gradients()

    def drop(self) -> None:
        """Free the shards' memory, and the activations of a pass that failed."""
        self._model = None
        gc.collect()
        self.empty_caches()

    def empty_caches(self) -> None:
        self._device.empty_caches()

    def _make(self, order: orders.Shard) -> orders.Answer:
        assert dist.group.WORLD is not None
        mesh = DeviceMesh.from_group(dist.group.WORLD, self._device.device.type)
        how = {"recompute": order.recompute, "offload": order.offload}
        model = ShardedModel(self._recipe, mesh, self._device.precision, **how)
        if model.loss_scale is not None:
            model.loss_scale.factor = order.factor
        model.load(self._masters)
        self._model = model
        return orders.Done()

    def _load_trained(self) -> orders.Answer:
        self._shards.load_trained(self._masters)
        return orders.Done()

    def _compute(self, order: orders.Pass) -> orders.Answer:
        begun, wall = self._device.stopwatch(), time.monotonic()
        if order.scale is None:
            loss = self._shards.loss(order.part, order.samples)
        else:
            loss = self._shards.add_gradients(order.part, order.scale, order.samples)
        self._device.synchronize()
        return orders.Computed(loss, math.isfinite(loss), self._device.stopwatch() - begun, time.monotonic() - wall)

    def _gather(self) -> orders.Answer:
        self._shards.gather_gradients(self._masters)
        return orders.Done()

    @property
    def _shards(self) -> ShardedModel:
        assert self._model is not None
        return self._model


def _attempt(do: Callable[[], orders.Answer]) -> orders.Answer:
    try:
        return do()
    except (MemoryError, RuntimeError) as error:
        if is_lack_of_memory(error):
            return orders.NoMemory()
        if is_loss_of_own_device(error):
            raise
        traceback.print_exc()
        return orders.Broken()
