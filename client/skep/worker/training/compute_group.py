"""The devices of this computer that compute the gradients of one model together, in 16 or 32 bits over fp32 parameters.

fp16 ends at 65504 and loses what is below 6e-8, so the loss is scaled up before the backward pass. hivemind's and
torch's own scalers undo that when the optimizer steps; here gradients of many micro-batches wait in `.grad` for a
round, so the scale is undone for each micro-batch before anything is added. `.grad` is always unscaled fp32. This
module only adds to it and never clears it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint

from skep.recipes.contract import OpenRecipe
from skep.recipes.tensors.batches import Batch
from skep.worker.training.device import TrainingDevice

HALVES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE: Final = 2.0**16
LEAST_SCALE: Final = 2.0**-16
LARGEST_SCALE: Final = 2.0**24
"""Every scale is a power of two: multiplying and dividing by it causes no rounding."""
GROWTH_AFTER: Final = 2000
"""Consecutive micro-batches without an overflow after which a larger scale is tried; the value of torch's GradScaler."""
ALONE: Final = "AlbertLayerGroup"
"""The layer class of ALBERT, the one family that transformers cannot checkpoint."""


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

    The first holds the model whose parameters and gradients the rest of the program uses. Each other device holds a
    copy, which is updated before each micro-batch and computes its part of the samples.
    """

    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    """Called once a micro-batch was handed to the devices, which may still compute. Must not wait for them."""

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
        """All tensors of the models on their devices: parameters, their gradients, buffers."""
        for member in self._members:
            gradients = (p.grad for p in member.model.parameters() if p.grad is not None)
            yield from chain(member.model.parameters(), gradients, member.model.buffers())

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread."""
        return self._first.stopwatch()

    def empty_caches(self) -> None:
        """Free the device memory that torch has cached and does not use."""
        for member in self._members:
            member.device.empty_caches()

    def recompute_activations(self) -> None:
        for member in self._members:
            recompute_activations(member.model)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """Add the gradients of `scale` x mean loss over the samples of `batch` to `.grad`.

        Returns the loss in nats per prediction. If it is not finite, nothing was added: the loss was not finite, or its
        gradients overflowed in fp16. If a single device runs out of memory midway, complete gradients were added to
        some parameters and none to the others; if one of several devices does, none were added.
        """
        parts = batch.split(math.ceil(len(batch) / len(self._members)))
        working = self._members[: len(parts)]
        self._update(working[1:])
        with ExitStack() as at_low_priority:
            for member in working:
                at_low_priority.enter_context(member.device.low_priority())
            # start the work of all devices before waiting for one
            losses = [self._loss(member, part) for member, part in zip(working, parts, strict=True)]
            weights = [len(part) / len(batch) for part in parts]
            value = sum(float(loss.detach()) * weight for loss, weight in zip(losses, weights, strict=True))
            if math.isfinite(value) and not self._backward(working, losses, [scale * weight for weight in weights]):
                value = math.nan
            self.meanwhile()
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


def autocast(precision: str, device_type: str) -> AbstractContextManager[object]:
    """A context in which matrices are multiplied in `precision` "bf16" or "fp16"; it has no effect for "fp32"."""
    half = HALVES.get(precision)
    return nullcontext() if half is None else torch.autocast(device_type, half)


def keep_norms_in_fp32(model: torch.nn.Module) -> None:
    """Make every normalisation layer take and return fp32: its sums of squares do not fit into 16 bits.

    On a GPU autocast does this already; on the processor it computes them in the type of the input.
    """
    for module in model.modules():
        if type(module).__name__.endswith("Norm"):
            module.register_forward_pre_hook(_as_fp32)


def _as_fp32(_module: torch.nn.Module, inputs: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(each.float() if torch.is_tensor(each) and each.is_floating_point() else each for each in inputs)


class LossScale:
    """The factor on the loss for fp16: halved when gradients overflow, doubled after a long time without."""

    def __init__(self, factor: float = FIRST_SCALE, growth_after: int = GROWTH_AFTER) -> None:
        self.factor = factor
        self._growth_after, self._good = growth_after, 0

    def learn(self, *, finite: bool) -> None:
        """Adapt the scale to a micro-batch; `finite` says whether its scaled gradients were."""
        self._good = self._good + 1 if finite else 0
        if not finite:
            self.factor = max(LEAST_SCALE, self.factor / 2)
        elif self._good == self._growth_after:
            self.factor, self._good = min(LARGEST_SCALE, self.factor * 2), 0


def add_gradients(
    losses: Sequence[torch.Tensor],
    weights: Sequence[float],
    parameters: Sequence[Sequence[torch.nn.Parameter]],
    scale: LossScale | None,
) -> bool:
    """Add the gradients of the sum of `weights` x `losses` (scalars) to `.grad`, unscaled; whether they were finite.

    Each loss depends on its own list of `parameters`; all lists are copies of the first, whose `.grad` receives the
    sum. With a `scale`, gradients that overflowed are discarded before they are added.
    """
    factor = scale.factor if scale else 1.0
    found = [
        torch.autograd.grad(loss * factor, list(own), allow_unused=True)
        for loss, own in zip(losses, parameters, strict=True)
    ]
    factors = [weight / weights[0] for weight in weights[1:]]
    sums = [_sum(first, others, factors) for first, *others in zip(*found, strict=True)]
    pairs = [(p, new) for p, new in zip(parameters[0], sums, strict=True) if new is not None]
    finite = scale is None or bool(torch.isfinite(total_norm(new for _, new in pairs)))
    if finite:
        _add(pairs, weights[0] / factor)
    if scale is not None:
        scale.learn(finite=finite)
    return finite


def total_norm(gradients: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.get_total_norm(list(gradients))


@torch.no_grad()
def _sum(
    first: torch.Tensor | None, others: Sequence[torch.Tensor | None], factors: Sequence[float]
) -> torch.Tensor | None:
    """The sum of `first` and the others times their factors, on the device of `first`. None if there is no gradient."""
    if first is None:
        return None
    for other, factor in zip(others, factors, strict=True):
        if other is not None:
            first = first.add(other.to(first.device), alpha=factor)  # not in place: it may be another parameter's too
    return first


@torch.no_grad()
def _add(pairs: Iterable[tuple[torch.nn.Parameter, torch.Tensor]], factor: float) -> None:
    for parameter, new in pairs:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.add_(new, alpha=factor)


def recompute_activations(model: Any) -> None:
    """Keep one activation per layer of a transformers model, and recompute the rest in the backward pass.

    Uses the non-reentrant variant: torch.autograd.grad (fp16) does not work with the reentrant one.
    """
    if model.supports_gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        return
    layers = [module for module in model.modules() if type(module).__name__ == ALONE]
    assert layers, f"{type(model).__name__} has no layers that are known here"
    for layer in layers:
        layer.forward = partial(_again, layer.forward)


def _again(forward: Any, *inputs: torch.Tensor, **options: Any) -> Any:
    return checkpoint(forward, *inputs, use_reentrant=False, **options)
