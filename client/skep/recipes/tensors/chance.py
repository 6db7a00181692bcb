"""Numbers that look drawn at random and are the same on every computer and device: a function of where they stand.

torch's own generators give other numbers on another device, and one for each sample would be slow.
"""

from __future__ import annotations

from typing import Final

import torch

_STEP: Final = -0x61C8864680B583EB
_FIRST: Final = -0x40A7B892E31B1A47
_SECOND: Final = -0x6B2FB644ECCEEE15
"""The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators), as signed."""


def numbers(draws: torch.Tensor, count: int, stream: int) -> torch.Tensor:
    """`count` numbers from 0 to 2**31 - 1 for each draw, int64 [draws, count]; other ones for another `stream`."""
    places = torch.arange(count, device=draws.device)
    mixed = _mix(_mix(draws + _signed((stream + 1) * _STEP))[:, None] + places * _STEP)
    return _shifted(mixed, 33)


def _signed(number: int) -> int:
    """Modulo 2**64, as int64 has it."""
    return (number + 2**63) % 2**64 - 2**63


def _mix(values: torch.Tensor) -> torch.Tensor:
    values = (values ^ _shifted(values, 30)) * _FIRST
    values = (values ^ _shifted(values, 27)) * _SECOND
    return values ^ _shifted(values, 31)


def _shifted(values: torch.Tensor, bits: int) -> torch.Tensor:
    """The logical shift to the right; that of int64 tensors is arithmetic."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)
