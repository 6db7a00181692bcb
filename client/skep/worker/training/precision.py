"""Computing in 16 bits over fp32 parameters: autocast, normalisation kept in fp32, and loss scaling for fp16.

fp16 ends at 65504 and loses what is below 6e-8, so the loss is scaled up before the backward pass. hivemind's and torch's
own scalers undo that when the optimizer steps; here gradients of many micro-batches wait in `.grad` for a round, so
the scale is undone for each micro-batch before anything is added. `.grad` is always true, unscaled fp32. It must not
know about samples, step batches or rounds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

import torch

HALVES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE: Final = 2.0**16
LEAST_SCALE: Final = 2.0**-16
LARGEST_SCALE: Final = 2.0**24
"""Powers of two, as every scale between them: multiplying and dividing by them rounds nothing."""
GROWTH_AFTER: Final = 2000
"""Micro-batches in a row without an overflow, after which a larger scale is tried; as torch's GradScaler has it."""


def autocast(precision: str, device_type: str) -> contextlib.AbstractContextManager[object]:
    """Where `precision` is "bf16" or "fp16", matrices are multiplied in it inside; nothing changes for "fp32"."""
    half = HALVES.get(precision)
    return contextlib.nullcontext() if half is None else torch.autocast(device_type, half)


def keep_norms_in_fp32(model: torch.nn.Module) -> None:
    """Every normalisation layer gets its input as fp32, and gives fp32: its sums of squares do not fit into 16 bits.

    On a GPU autocast does this by itself; on the processor it leaves them in whatever type arrives.
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
        """Of a micro-batch: whether its scaled gradients were finite."""
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

    Each loss depends on its own list of `parameters`: a copy of the first, to whose `.grad` all is added. With a `scale`,
    gradients that overflowed are thrown away before they touch it.
    """
    factor = scale.factor if scale else 1.0
    found = [
        torch.autograd.grad(loss * factor, list(own), allow_unused=True)
        for loss, own in zip(losses, parameters, strict=True)
    ]
    factors = [weight / weights[0] for weight in weights[1:]]
    sums = [_sum(first, others, factors) for first, *others in zip(*found, strict=True)]
    pairs = [(p, new) for p, new in zip(parameters[0], sums, strict=True) if new is not None]
    finite = scale is None or all_finite(new for _, new in pairs)
    if finite:
        _add(pairs, weights[0] / factor)
    if scale is not None:
        scale.learn(finite=finite)
    return finite


def all_finite(gradients: Iterable[torch.Tensor]) -> bool:
    return bool(torch.isfinite(torch.nn.utils.get_total_norm(list(gradients))))


@torch.no_grad()
def _sum(
    first: torch.Tensor | None, others: Sequence[torch.Tensor | None], factors: Sequence[float]
) -> torch.Tensor | None:
    """`first`, and of every other one so many times; on the device of the first. None where there is no gradient."""
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
