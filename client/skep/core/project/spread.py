"""The memory that each device needs where a model is spread over several: its share, and what computes at the moment.

Each of N devices keeps 1/N of the parameters and of their gradients; the masters and the optimizer are in the host's
memory. Only the part of the model that computes is whole: see `worker/ranks/sharding.py`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skep.core.device import ALL, Device, chosen
from skep.core.project.data import Recipe, values

FLOAT: Final = 4
"""Bytes of one fp32 value: a weight, a gradient or one of the optimizer's statistics."""
HALF: Final = 2
"""Bytes of one value in bf16 or fp16."""


def chosen_together(devices: Sequence[Device], wanted: str) -> tuple[Device, ...]:
    """Those that compute one model together: all cards, or several that `wanted`, the setting compute.device, names."""
    names = chosen(wanted)
    found = tuple(each for each in devices if names == (ALL,) or each.choice in names)
    return found if len(found) > 1 else ()


def bytes_each(recipe: Recipe, devices: int, *, half: bool, apart: bool = False, offload: bool = False) -> float:
    """Bytes on each of so many `devices`, for micro-batches of one sample; in 16 bits if `half`.

    A micro-batch's gradients are kept `apart` in fp16, until it is known that none overflowed. With `offload` the shares
    are in the host's memory, and a device has those of one part while they are on their way.

    While a part of the model goes backward there are: what was received of its parameters, which torch copies into
    their places; then these and their gradients; and the float32 copy of the gradients that the last part has sent.
    """
    computed = HALF if half else FLOAT
    share = share_bytes(recipe, apart=apart) / devices
    if offload:
        share = values(recipe.largest_part) * (FLOAT + computed) / devices
    part = values(recipe.largest_part) * (2 * computed + FLOAT)
    return share + part + recipe.activations * computed


def share_bytes(recipe: Recipe, *, apart: bool = False) -> int:
    """Bytes of the shares of all devices: parameters and their gradients, `apart` as above."""
    kept = 3 * FLOAT if apart else 2 * FLOAT
    return kept * values(recipe.trained) + FLOAT * values(recipe.frozen)
