"""Whether numbers may be used: gradients before a step, a tensor after its step, an average of parameters, a state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import torch

LARGEST_GRADIENT: Final = 1e9
"""Bound on the norm of gradients. fp32 stores a parameter near 1 to within 6e-8; at this bound, that rounding alone
changes the loss by dozens of nats, so larger gradients say nothing. Their squares also remain far below fp32's limit."""
LARGEST_CHANGE: Final = 2.0
"""By how many times its own size (root mean square) averaging may change a parameter tensor."""
LEAST_SIZE: Final = 1.0
"""Smaller tensors, such as biases that begin at 0, are taken to be of this size.

Peers of one epoch differ by the steps of a few missed rounds, and a step moves a value by about the learning rate, so
an honest average is orders of magnitude within these bounds. They refuse parameters of a peer that diverged; what is
known of our own steps bounds an average more narrowly (see `averaging.drift`).
"""


def finite(tensors: Iterable[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def plausible_norm(norm: torch.Tensor | float) -> bool:
    """Whether gradients with this norm may be used; not if it is not finite."""
    return float(norm) <= LARGEST_GRADIENT  # False for NaN


def size_of(tensor: torch.Tensor) -> float:
    """The root mean square; 0 of an empty tensor. Needs no copy of the tensor."""
    return float(torch.linalg.vector_norm(tensor)) / math.sqrt(tensor.numel()) if tensor.numel() else 0.0


@torch.no_grad()
def magnitude(tensor: torch.Tensor) -> float:
    """The sum of the absolute values."""
    return float(tensor.abs().sum(dtype=torch.float64))


def plausible_changes(
    changes: Sequence[torch.Tensor], sizes: Sequence[float], bounds: Sequence[float] | None = None
) -> bool:
    """Whether averaging may change tensors of these `sizes` by `changes`; not if one of them is not finite.

    `bounds` are those of the sizes of the changes, where they are known.
    """
    most = [LARGEST_CHANGE * max(size, LEAST_SIZE) for size in sizes]
    if bounds is not None:
        most = list(map(min, most, bounds))
    return all(size_of(change) <= bound for change, bound in zip(changes, most, strict=True))


def copies(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in tensors]


def restore(tensors: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> None:
    for tensor, before in zip(tensors, kept, strict=True):
        tensor.copy_(before)
