"""A model whose parameters are spread over the devices of several ranks, by torch's FSDP2.

The whole parameters and the sums of their gradients, the masters, are in the host memory of rank 0 alone, where the
swarm averages them. A device holds 1/N of the parameters and of their gradients, and the whole of the one part that
computes at the moment. Every rank makes the same calls in the same order; only rank 0 gives the masters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor

from skep.recipes.contract import OpenRecipe
from skep.recipes.tensors.batches import Batch
from skep.worker.ranks import sharding_transfer as transfer
from skep.worker.ranks.sharding_norms import GroupBatchNorm, share_batch_norms
from skep.worker.ranks.sharding_units import gather_for_heads, separate_heads, units
from skep.worker.ranks.sharding_waits import WaitedAllGather, WaitedReduceScatter
from skep.worker.training.compute_group import HALVES, LossScale, recompute_activations


class ShardedModel:
    """A recipe's model, sharded over the ranks of a one-dimensional `mesh`, whose group has gloo for the processor.

    In `precision` "bf16" or "fp16", parts are gathered and compute in 16 bits; shards, and sums of gradients, are float32. With
    `recompute`, one activation is kept for each block. With `offload`, the shards are in the host's memory too.
    A rank that is gone, or a wait past the group's deadline, raises RuntimeError in every other rank: then the group is
    destroyed, and the ranks that are left make a ShardedModel of a new mesh and `load` the same masters. Gradients that
    were not gathered by then are lost.
    """

    def __init__(
        self, recipe: OpenRecipe, mesh: DeviceMesh, precision: str, *, recompute: bool = False, offload: bool = False
    ) -> None:
        self._recipe, self._group = recipe, mesh.get_group()
        self.loss_scale = LossScale() if precision == "fp16" else None
        with torch.device("meta"):
            model = recipe.build()
        model = share_batch_norms(model.train(), self._group)
        separate_heads(model)
        if recompute:
            recompute_activations(model)
        self._model = _sharded(model, mesh, precision, offload=offload)
        self._device = torch.device("cpu" if mesh.device_type == "cpu" else torch.cuda.current_device())
        self._model.to_empty(device="cpu" if offload else self._device)
        if offload:
            _make_buffers(self._model, self._device)
        self._parameters = {name: _as_sharded(each) for name, each in self._model.named_parameters()}

    def load(self, masters: nn.Module | None) -> None:
        """Fill the shards and the buffers of all ranks from the whole model of rank 0, float32 on the processor.

        `masters` is None on the other ranks. The names of its parameters are those of the recipe's model.
        """
        whole = _parameters(masters)
        for name, parameter in self._parameters.items():
            transfer.scatter(whole.get(name), parameter.to_local(), self._group)
        buffers = {} if masters is None else dict(masters.named_buffers(remove_duplicate=False))
        for name, buffer in self._model.named_buffers():
            transfer.copy_to_all(buffers.get(name), buffer, self._group)

    def load_trained(self, masters: nn.Module | None) -> None:
        """As `load`, for the parameters that are trained: after an optimizer's step, or a state from another peer."""
        whole = _parameters(masters)
        for name, parameter in self._trained():
            transfer.scatter(whole.get(name), parameter.to_local(), self._group)

    def add_gradients(self, part: Batch, scale: float, samples: int) -> float:
        """Add the gradients of `scale` x mean loss over a micro-batch of all ranks to the shards' sums.

        `part` are this rank's of its `samples`, and may be empty. Returns, on every rank, the loss in nats per
        prediction over all of them; if it is not finite, nothing was added: it was not, or gradients overflowed in fp16.
        """
        share = len(part) / samples
        loss = self._loss(part)
        value = self._sum(float(loss.detach()) * share)
        if not math.isfinite(value):
            return value
        if self.loss_scale is None:
            (loss * (scale * share)).backward()
            return value
        return value if self._add_scaled(loss * share, scale, self.loss_scale) else math.nan

    def _add_scaled(self, loss: torch.Tensor, weight: float, scale: LossScale) -> bool:
        """Whether the gradients of `weight` x `loss` were finite on all ranks, and were added, unscaled."""
        sums = [(parameter, parameter.grad) for _, parameter in self._trained()]
        self.discard_gradients()
        (loss * scale.factor).backward()
        found = [None if each.grad is None else _as_sharded(each.grad).to_local() for each, _ in sums]
        overflows = sum(not bool(torch.isfinite(new).all()) for new in found if new is not None)
        # a gradient that overflowed in one rank is in one rank's shard
        finite = self._sum(overflows) == 0
        for (parameter, total), new in zip(sums, found, strict=True):
            if finite and new is not None:
                new.mul_(weight / scale.factor)
                if total is not None:
                    _as_sharded(total).to_local().add_(new)
            if not finite or total is not None:
                parameter.grad = total
        scale.learn(finite=finite)
        return finite

    @torch.no_grad()
    def loss(self, part: Batch, samples: int) -> float:
        """Mean loss over `samples` of all ranks, of which this rank has `part`, without gradients; on every rank."""
        return self._sum(float(self._loss(part)) * len(part) / samples)

    def gather_gradients(self, masters: nn.Module | None) -> None:
        """Add the sums of the shards to `.grad` of rank 0's masters, tensor by tensor, and start from zero again.

        A parameter that no sample has used keeps the `.grad` it has. Buffers, such as running statistics, which are
        equal on all ranks, are copied too. In rank 0 the sums are added once all of them are there: where a rank is lost
        meanwhile, `.grad` stays as it is.
        """
        whole = _parameters(masters)
        totals = self._gather(whole)
        if masters is None:
            return
        for name, total in totals.items():
            _add(whole[name], total)
        own = dict(self._model.named_buffers())
        for name, buffer in masters.named_buffers():
            buffer.copy_(own[name])

    def _gather(self, whole: Mapping[str, nn.Parameter]) -> dict[str, torch.Tensor]:
        """The sums over all ranks by the parameter's name, in rank 0; float32 on the processor."""
        totals: dict[str, torch.Tensor] = {}
        for name, parameter in self._trained():
            if parameter.grad is not None:
                if name in whole:
                    totals[name] = torch.zeros_like(whole[name])
                shard = _as_sharded(parameter.grad).to_local()
                transfer.gather(shard, totals.get(name), self._group)
                parameter.grad = None
        return totals

    def discard_gradients(self) -> None:
        """Forget the sums that were not gathered yet."""
        for _, parameter in self._trained():
            parameter.grad = None

    def tensors(self) -> Iterator[torch.Tensor]:
        """What this rank keeps between micro-batches: its shards, their gradients, the buffers."""
        for parameter in self._parameters.values():
            yield parameter.to_local()
            if parameter.grad is not None:
                yield _as_sharded(parameter.grad).to_local()
        yield from self._model.buffers()

    def _loss(self, part: Batch) -> torch.Tensor:
        # a rank without samples computes nevertheless: the others gather their parts from it
        batch = part if len(part) else self._recipe.example(1)
        for module in self._model.modules():
            if isinstance(module, GroupBatchNorm):
                module.counts = len(part) > 0
        return self._recipe.loss(self._model, batch.to(self._device))

    def _trained(self) -> Iterator[tuple[str, DTensor]]:
        return ((name, each) for name, each in self._parameters.items() if each.requires_grad)

    def _sum(self, value: float) -> float:
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total, group=self._group)
        return float(total)


def _sharded(model: nn.Module, mesh: DeviceMesh, precision: str, *, offload: bool) -> nn.Module:
    half = HALVES.get(precision)
    policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=None if half is None else torch.float32)
    kept = CPUOffloadPolicy(pin_memory=mesh.device_type == "cuda") if offload else OffloadPolicy()
    parts = units(model)
    for part in [*parts, *([] if parts[-1] is model else [model])]:
        part.register_forward_hook(_no_view)
        fully_shard(part, mesh=mesh, mp_policy=policy, offload_policy=kept, reshard_after_forward=True)
        assert isinstance(part, FSDPModule)
        # gradients are summed: each rank has weighted its own
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(enable=True)
        # by default the next part would be gathered while this one still computes
        part.set_modules_to_backward_prefetch([part])
        part.set_custom_all_gather(WaitedAllGather())
        part.set_custom_reduce_scatter(WaitedReduceScatter())
    gather_for_heads(model)
    return model


def _make_buffers(model: nn.Module, device: torch.device) -> None:
    """Offloaded shards go to the device where they are used; buffers have to be there."""
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, torch.empty_like(buffer, device=device))


def _no_view(_part: nn.Module, _inputs: object, output: object) -> object:
    """FSDP attaches its hooks to what a part returns, which a view loses when a caller changes it in place."""
    # torch has no public name for `_base`
    return output.clone() if isinstance(output, torch.Tensor) and output._base is not None else output  # noqa: SLF001


def _parameters(masters: nn.Module | None) -> dict[str, nn.Parameter]:
    return {} if masters is None else dict(masters.named_parameters(remove_duplicate=False))


@torch.no_grad()
def _add(parameter: nn.Parameter, total: torch.Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = total
    else:
        parameter.grad.add_(total)


def _as_sharded(tensor: torch.Tensor) -> DTensor:
    assert isinstance(tensor, DTensor)
    return tensor
