"""Bytes on the wire of a model's tensors, known from their shapes. Pure."""

from __future__ import annotations

import math
from typing import Final

from skep.core.project.recipe import Shape, Shapes
from skep.core.project.types import PowerSGD, Sync

FLOAT_BYTES: Final = {"none": 4, "float16": 2, "scaled-float16": 2, "uniform-8bit": 1}
"""Bytes of one fp32 value; what is sent beside the values (a row's scale, a table of 256 values) is small."""
FACTOR_BYTES: Final = FLOAT_BYTES["none"]
"""PowerSGD's left factors are never compressed further: every peer must hold the same basis."""


def bytes_per_value(compression: str, values: int, threshold: int) -> int:
    """Of a tensor of so many values; `threshold` is where size-adaptive compression takes 8 bits instead of 16."""
    if compression == "size-adaptive":
        compression = "uniform-8bit" if values >= threshold else "float16"
    return FLOAT_BYTES[compression]


def low_rank(shape: Shape, powersgd: PowerSGD) -> bool:
    """Whether PowerSGD sends a tensor of this shape as two thin matrices: when it is a matrix, and that saves enough."""
    return len(shape) > 1 and 1 - powersgd.rank * sum(shape) / math.prod(shape) >= powersgd.min_compression_ratio


def gradient_bytes(sync: Sync, shapes: Shapes) -> int:
    """Of one set of gradients."""
    return sum(number * _gradient_bytes(sync, shape) for shape, number in shapes.items())


def _gradient_bytes(sync: Sync, shape: Shape) -> int:
    values, powersgd = math.prod(shape), sync.powersgd
    if powersgd is None or not low_rank(shape, powersgd):
        return values * bytes_per_value(sync.grad_compression, values, sync.size_adaptive_threshold)
    rows, columns = (powersgd.rank * length for length in shape)
    return rows * FACTOR_BYTES + columns * bytes_per_value(sync.grad_compression, columns, sync.size_adaptive_threshold)


def state_bytes(sync: Sync, shapes: Shapes) -> int:
    """Of one set of parameters, as they are averaged."""
    sizes = [(math.prod(shape), number) for shape, number in shapes.items()]
    return sum(
        number * size * bytes_per_value(sync.state_compression, size, sync.size_adaptive_threshold)
        for size, number in sizes
    )
