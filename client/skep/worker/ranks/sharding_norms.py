"""Batch normalisation over the samples of all ranks, with equal running statistics on each of them.

torch.nn.SyncBatchNorm does this between GPUs only, and counts every rank's samples. This one works with any group, and
leaves out a rank that computes only because the others need its shards.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed as dist
from torch import nn

from skep.worker.ranks.collectives import wait


class GroupBatchNorm(nn.SyncBatchNorm):
    """Mean and variance of each channel over all samples of the group, weighted by their number."""

    counts = True
    """Whether this rank's samples are real. If no rank's are, the result is not finite."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """`inputs` [samples, channels, …] of any floating type; the statistics are float32."""
        if not self.training:
            return super().forward(inputs)
        values = inputs.float()
        axes = [0, *range(2, values.dim())]
        weight = 1.0 if self.counts else 0.0
        count = _sum(torch.full((1,), weight * values.numel() / values.shape[1], device=values.device), self)
        mean = _sum(weight * values.sum(axes), self) / count
        centred = values - _over(mean, values)
        variance = _sum(weight * centred.square().sum(axes), self) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1))
        result = centred * _over((variance + self.eps).rsqrt(), values)
        if self.affine:
            result = result * _over(self.weight.float(), values) + _over(self.bias.float(), values)
        return result.to(inputs.dtype)

    @torch.no_grad()
    def _follow(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        part = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, part)
        self.running_var.lerp_(variance, part)


def share_batch_norms(model: nn.Module, group: dist.ProcessGroup) -> nn.Module:
    """`model` with GroupBatchNorm for each batch normalisation in it."""
    shared: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model, group)
    for module in shared.modules():
        if type(module) is nn.SyncBatchNorm:
            module.__class__ = GroupBatchNorm
    return shared


class _Sum(torch.autograd.Function):
    """The sum over all ranks. What any of them does with it counts in each one's gradient."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.group = group
        total = values.clone()
        wait(dist.all_reduce(total, group=group, async_op=True))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        total = gradients[0].clone()
        wait(dist.all_reduce(total, group=ctx.group, async_op=True))
        return total, None


def _sum(values: torch.Tensor, norm: nn.SyncBatchNorm) -> torch.Tensor:
    total: torch.Tensor = _Sum.apply(values, norm.process_group)
    return total


def _over(channels: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return channels.view(1, -1, *[1] * (values.dim() - 2))
