"""Gradients where memory runs out: a micro-batch in halves, each gradient counted exactly once.

A backward pass that breaks off has added whole gradients to some parameters (of the last layers) and none to the others:
each parameter's is added in one piece, when all that flows into it is there. So the halves are computed for the others
only. It must not choose sizes nor talk to anyone.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import torch

from skep.recipes.tensors.batches import Batch
from skep.worker.training.device_errors import is_lack_of_memory, out_of_memory

TRIES: Final = 3
"""How often one sample is tried before memory counts as gone."""
PATIENCE_SECONDS: Final = 0.3
"""Before one sample is tried again: whoever took the memory may give it back."""

Marks = list[tuple[torch.nn.Parameter, int | None]]


class Computes(Protocol):
    """What is needed of a trainer."""

    @property
    def parameters(self) -> Sequence[torch.nn.Parameter]: ...
    def add_gradients(self, batch: Batch, scale: float) -> float: ...
    def loss(self, batch: Batch) -> float: ...
    def empty_caches(self) -> None: ...
    @property
    def device_name(self) -> str: ...


class PartialGradients(Exception):
    """Part of a micro-batch was added to `.grad` and the rest cannot be: what has accumulated is worth nothing."""


def add_gradients(trainer: Computes, batch: Batch, scale: float, ran_out: Callable[[int], None]) -> float:
    """As Trainer.add_gradients, in as many pieces as memory asks for; `ran_out` is told each size that was too large.

    Returns the mean loss over the samples. Raises DeviceError when one sample finds no room, PartialGradients.
    """
    return _Piece(trainer, ran_out).add(batch, scale, tries=TRIES)


class _Piece:
    def __init__(self, trainer: Computes, ran_out: Callable[[int], None]) -> None:
        self._trainer, self._ran_out = trainer, ran_out

    def add(self, batch: Batch, scale: float, *, tries: int) -> float:
        marks = _marks(self._trainer.parameters)
        loss = self._attempt(batch, scale)
        if loss is not None:
            return loss
        added = _moved(marks)
        self._ran_out(len(batch))
        gc.collect()
        self._trainer.empty_caches()
        if added and len(added) == len(marks):
            return self._trainer.loss(batch)  # it broke off when all was done
        with _left_out(added):
            loss = self._in_halves(batch, scale) if len(batch) > 1 else self._once_more(batch, scale, tries - 1)
        if added and not math.isfinite(loss):
            raise PartialGradients
        return loss

    def _attempt(self, batch: Batch, scale: float) -> float | None:
        """The loss, or None when memory did not suffice. The error goes with its frames, which hold activations."""
        try:
            return self._trainer.add_gradients(batch, scale)
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            return None

    def _in_halves(self, batch: Batch, scale: float) -> float:
        total, bad = 0.0, 0
        halves = batch.split((len(batch) + 1) // 2)
        for half in halves:
            part = len(half) / len(batch)
            loss = self.add(half, scale * part, tries=TRIES)
            bad += not math.isfinite(loss)
            total += loss * part
        if 0 < bad < len(halves):
            raise PartialGradients
        return total

    def _once_more(self, batch: Batch, scale: float, tries: int) -> float:
        if tries == 0:
            raise out_of_memory(self._trainer.device_name)
        time.sleep(PATIENCE_SECONDS)
        return self.add(batch, scale, tries=tries)


def _marks(parameters: Sequence[torch.nn.Parameter]) -> Marks:
    """What tells later whether something was added to a parameter's gradient."""
    return [(each, None if each.grad is None else each.grad._version) for each in parameters]  # noqa: SLF001 - torch has no other name for it


def _moved(marks: Marks) -> list[torch.nn.Parameter]:
    return [each for each, version in marks if each.grad is not None and each.grad._version != version]  # noqa: SLF001 - as above


@contextlib.contextmanager
def _left_out(parameters: Sequence[torch.nn.Parameter]) -> Iterator[None]:
    """Meanwhile no gradients are computed for these."""
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_()
