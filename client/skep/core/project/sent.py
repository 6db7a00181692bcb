"""Bytes that a round sends for a model's tensors, calculated from their shapes. Pure."""

from __future__ import annotations

import math
from typing import Final

from skep.core.project.data import Shape, Shapes
from skep.core.project.manifest import Sync

FLOAT_BYTES: Final = {"none": 4, "float16": 2, "scaled-float16": 2, "uniform-8bit": 1}
"""Bytes sent for one fp32 value. The additional data (a scale per row, a table of 256 values) is small and ignored."""
FACTOR_BYTES: Final = FLOAT_BYTES["none"]
"""PowerSGD's left factors are not compressed further, because every peer needs the same basis."""


def bytes_per_value(compression: str, values: int, threshold: int) -> int:
    """For a tensor with `values` values; from `threshold` on, size-adaptive compression uses 8 bits instead of 16."""
    if compression == "size-adaptive":
        compression = "uniform-8bit" if values >= threshold else "float16"
    return FLOAT_BYTES[compression]


def gradient_bytes(sync: Sync, shapes: Shapes) -> int:
    """Bytes sent for one set of gradients."""
    return sum(number * _gradient_bytes(sync, shape) for shape, number in shapes.items())


def _gradient_bytes(sync: Sync, shape: Shape) -> int:
    values, powersgd = math.prod(shape), sync.powersgd
    if powersgd is None or not powersgd.applies_to(shape):
        return values * bytes_per_value(sync.grad_compression, values, sync.size_adaptive_threshold)
    rows, columns = (powersgd.rank * length for length in shape)
    return rows * FACTOR_BYTES + columns * bytes_per_value(sync.grad_compression, columns, sync.size_adaptive_threshold)


def state_bytes(sync: Sync, shapes: Shapes) -> int:
    """Bytes sent for one set of parameters in averaging."""
    sizes = [(math.prod(shape), number) for shape, number in shapes.items()]
    return sum(
        number * size * bytes_per_value(sync.state_compression, size, sync.size_adaptive_threshold)
        for size, number in sizes
    )
