"""Samples as tensors: the rows of a shard, the batches that recipes learn from, and numbers drawn reproducibly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch


@dataclass(frozen=True)
class Rows:
    """Samples as a shard keeps them.

    `inputs`: tokens, uint8 or int32 [samples, sequence_length], or pixels, uint8 [samples, channels, size, size].
    `labels`: int32 [samples], for images alone.
    """

    inputs: torch.Tensor
    labels: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def first(self, count: int) -> Rows:
        """A copy of the first `count`, so that the file may go."""
        labels = None if self.labels is None else self.labels[:count].clone()
        return Rows(self.inputs[:count].clone(), labels)


@dataclass(frozen=True)
class Batch:
    """Samples for one forward pass.

    `inputs`: tokens, int64 [samples, sequence_length], or pixels, uint8 [samples, channels, size, size].
    `draws`: int64 [samples], the number of each sample in this peer's order (or among those held out). A recipe that
    needs chance takes it from there, so that a restart repeats it and the next pass over the data does not.
    `labels`: int64 [samples], for images alone.
    """

    inputs: torch.Tensor
    draws: torch.Tensor
    labels: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def to(self, device: torch.device) -> Batch:
        labels = None if self.labels is None else self.labels.to(device)
        return Batch(self.inputs.to(device), self.draws.to(device), labels)

    def split(self, size: int) -> list[Batch]:
        """Batches of `size`, the last with what is left."""
        return [self._part(slice(start, start + size)) for start in range(0, len(self), size)]

    def part(self, start: int, count: int) -> Batch:
        """`count` samples from `start` on, or what is left."""
        return self._part(slice(start, start + count))

    def _part(self, part: slice) -> Batch:
        return Batch(self.inputs[part], self.draws[part], None if self.labels is None else self.labels[part])


def batch_of(parts: Sequence[Rows], first_draw: int) -> Batch:
    """The samples of all parts, of which there is at least one, numbered from `first_draw`."""
    inputs = torch.cat([rows.inputs for rows in parts])
    if parts[0].labels is None:
        return Batch(inputs.long(), _draws(first_draw, len(inputs)))
    labels = torch.cat([rows.labels for rows in parts if rows.labels is not None])
    return Batch(inputs, _draws(first_draw, len(inputs)), labels.long())


def text_batch(tokens: torch.Tensor) -> Batch:
    """`tokens`, int64 [samples, sequence_length], numbered from 0."""
    return Batch(tokens, _draws(0, len(tokens)))


def _draws(first: int, count: int) -> torch.Tensor:
    return torch.arange(first, first + count)


# --- pseudorandom numbers that are equal on every computer and device: a function of their position; torch's own
# generators give different numbers on different devices, and one generator per sample would be slow

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
