"""Samples as tensors: the rows of a shard, and the batches that recipes learn from. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
