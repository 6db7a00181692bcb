"""Bytes a tensor takes on its way to another peer, by how the manifest compresses it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from skep.core.manifest_types import PowerSGD, Sync

FLOAT_BYTES: Final = {"none": 4, "float16": 2, "scaled-float16": 2, "uniform-8bit": 1}
"""Bytes of one fp32 value; what is sent beside the values (a row's scale, a table of 256 values) is small."""
FACTOR_BYTES: Final = FLOAT_BYTES["none"]
"""PowerSGD's left factors are never compressed further: every peer must hold the same basis."""

Tensors = tuple[tuple[int, int], int]
"""Rows and columns, and how many tensors are like that; a vector, which is never factored, may stand as its values."""


def bytes_per_value(compression: str, values: int, threshold: int) -> int:
    """Of a tensor of so many values; `threshold` is where size-adaptive compression takes 8 bits instead of 16."""
    if compression == "size-adaptive":
        compression = "uniform-8bit" if values >= threshold else "float16"
    return FLOAT_BYTES[compression]


def low_rank(shape: tuple[int, int], powersgd: PowerSGD) -> bool:
    """Whether PowerSGD sends a matrix of this shape as two thin ones: when that saves enough."""
    return 1 - powersgd.rank * sum(shape) / math.prod(shape) >= powersgd.min_compression_ratio


def gradient_bytes(sync: Sync, tensors: Iterable[Tensors]) -> int:
    """Of one set of gradients."""
    return sum(times * _gradient_bytes(sync, shape) for shape, times in tensors)


def _gradient_bytes(sync: Sync, shape: tuple[int, int]) -> int:
    values, powersgd = math.prod(shape), sync.powersgd
    if powersgd is None or not low_rank(shape, powersgd):
        return values * bytes_per_value(sync.grad_compression, values, sync.size_adaptive_threshold)
    rows, columns = (powersgd.rank * length for length in shape)
    return rows * FACTOR_BYTES + columns * bytes_per_value(sync.grad_compression, columns, sync.size_adaptive_threshold)


def state_bytes(sync: Sync, tensors: Iterable[Tensors]) -> int:
    """Of one set of parameters, as they are averaged."""
    sizes = [(math.prod(shape), times) for shape, times in tensors]
    return sum(
        times * size * bytes_per_value(sync.state_compression, size, sync.size_adaptive_threshold)
        for size, times in sizes
    )
