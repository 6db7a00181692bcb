"""The devices of this computer that compute the gradients of one model together.

It must not know about step batches, rounds or the swarm: it adds gradients to `.grad` and never clears them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain

import torch

from skep.recipes.contract import OpenRecipe
from skep.recipes.tensors.batches import Batch
from skep.worker.training.activation_checkpointing import recompute_activations
from skep.worker.training.device import TrainingDevice
from skep.worker.training.precision import LossScale, add_gradients, autocast, keep_norms_in_fp32


@dataclass(frozen=True)
class _Member:
    """One device, with the model or a copy of it."""

    device: TrainingDevice
    model: torch.nn.Module

    @property
    def trained(self) -> list[torch.nn.Parameter]:
        return [p for p in self.model.parameters() if p.requires_grad]


class ComputeGroup:
    """One to many `devices`, of one kind and in one precision.

    The first holds the model whose parameters and gradients everybody else sees. Each other one holds a copy, which is
    brought up to date before each micro-batch and computes its part of the samples.
    """

    def __init__(self, devices: Sequence[TrainingDevice], recipe: OpenRecipe) -> None:
        self._recipe = recipe
        self._first, *others = devices
        self.model = recipe.build().to(self._first.device)
        self.model.train()
        if self._first.precision != "fp32":
            keep_norms_in_fp32(self.model)
        self.loss_scale = LossScale() if self._first.precision == "fp16" else None
        copies = [_Member(each, deepcopy(self.model).to(each.device)) for each in others]
        self._members = [_Member(self._first, self.model), *copies]

    @property
    def name(self) -> str:
        return ", ".join(member.device.name for member in self._members)

    @property
    def kind(self) -> str:
        """As torch names it: "cpu", "cuda" or "mps"."""
        return self._first.device.type

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return self._members[0].trained

    def tensors(self) -> Iterator[torch.Tensor]:
        """All that the models hold on their devices: parameters, their gradients, buffers."""
        for member in self._members:
            gradients = (p.grad for p in member.model.parameters() if p.grad is not None)
            yield from chain(member.model.parameters(), gradients, member.model.buffers())

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread."""
        return self._first.stopwatch()

    def empty_caches(self) -> None:
        """Give back what torch keeps of the devices' memory and does not use."""
        for member in self._members:
            member.device.empty_caches()

    def recompute_activations(self) -> None:
        for member in self._members:
            recompute_activations(member.model)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """Add the gradients of `scale` x mean loss over the samples of `batch` to `.grad`.

        Returns the loss in nats per prediction. One that is not finite says that nothing was added: the loss itself was
        not, or its gradients overflowed in fp16. Where one device runs out of memory in the middle, whole gradients were
        added to some parameters and none to the others; where one of several does, none were.
        """
        parts = batch.split(math.ceil(len(batch) / len(self._members)))
        working = self._members[: len(parts)]
        self._update(working[1:])
        with ExitStack() as at_low_priority:
            for member in working:
                at_low_priority.enter_context(member.device.low_priority())
            # every device has its work before any is waited for
            losses = [self._loss(member, part) for member, part in zip(working, parts, strict=True)]
            weights = [len(part) / len(batch) for part in parts]
            value = sum(float(loss.detach()) * weight for loss, weight in zip(losses, weights, strict=True))
            if math.isfinite(value) and not self._backward(working, losses, [scale * weight for weight in weights]):
                value = math.nan
        for member in working:
            member.device.synchronize()
        return value

    @torch.no_grad()
    def loss(self, batch: Batch) -> float:
        """Mean loss over `batch`, in nats per prediction, without gradients."""
        with self._first.low_priority():
            return float(self._loss(self._members[0], batch))

    def _loss(self, member: _Member, batch: Batch) -> torch.Tensor:
        with autocast(member.device.precision, self.kind):
            return self._recipe.loss(member.model, batch.to(member.device.device))

    def _backward(self, working: Sequence[_Member], losses: Sequence[torch.Tensor], weights: Sequence[float]) -> bool:
        """Whether the gradients of the sum of `weights` x `losses` were added to `.grad`."""
        if len(working) == 1 and self.loss_scale is None:
            (losses[0] * weights[0]).backward()
            return True
        return add_gradients(losses, weights, [member.trained for member in working], self.loss_scale)

    @torch.no_grad()
    def _update(self, copies: Sequence[_Member]) -> None:
        for copy in copies:
            for ours, theirs in zip(self.model.parameters(), copy.model.parameters(), strict=True):
                theirs.requires_grad_(ours.requires_grad)
                if ours.requires_grad:
                    theirs.copy_(ours, non_blocking=True)
