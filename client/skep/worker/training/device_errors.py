"""A device that has no memory to give, or is gone: in words, and gradients in smaller pieces where memory runs out.

A backward pass that breaks off has added whole gradients to some parameters (of the last layers) and none to the others:
each parameter's is added in one piece, when all that flows into it is there. So the halves of a micro-batch are computed for
the others only, and each gradient is counted exactly once.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from skep.core.errors import DeviceError, DoesNotFit
from skep.core.text import Text
from skep.recipes.tensors.batches import Batch
from skep.worker.training.compute_group import ComputeGroup

MAKE_ROOM: Final = Text("device.close_other_programs_use_memory")
TRIES: Final = 3
"""How often one sample is tried before memory counts as gone."""
PATIENCE_SECONDS: Final = 0.3
"""Before one sample is tried again: whoever took the memory may give it back."""
_NO_MEMORY: Final = (
    "not enough memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "CUDA error: out of memory",
)
_GONE: Final = ("CUDA error", "HIP error", "CUDA driver error", "cuDNN error", "CUBLAS_STATUS", "NVML", "MPS backend")


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether torch or the system had no memory to give; torch says so in many ways on the processor."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, OSError | RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def is_loss_of_device(error: BaseException) -> bool:
    """Whether the GPU, or its driver, stopped working for this process: nothing on it can be used any more."""
    if is_lack_of_memory(error):
        return False
    if isinstance(error, torch.AcceleratorError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _GONE)


@contextlib.contextmanager
def as_does_not_fit(title: str, device: str) -> Iterator[None]:
    """Says in words (DoesNotFit) that memory did not suffice for what is done inside."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        raise DoesNotFit(Text("device.does_not_fit_into_memory", title=title, device=device), MAKE_ROOM) from None


@contextlib.contextmanager
def as_device_error(device: str) -> Iterator[None]:
    """Says in words (DeviceError) what the device named `device` does to the training inside."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if is_lack_of_memory(error):
            raise out_of_memory(device) from None
        if is_loss_of_device(error):
            raise DeviceError(
                Text("device.stopped_working", device=device),
                Text("device.skep_tries_again_if_happens"),
            ) from None
        raise


def out_of_memory(device: str) -> DeviceError:
    return DeviceError(
        Text("device.not_even_one_sample_finds", device=device),
        Text("device.skep_tries_again_later", make_room=MAKE_ROOM),
    )


Marks = list[tuple[torch.nn.Parameter, int | None]]


class PartialGradients(Exception):
    """Part of a micro-batch was added to `.grad` and the rest cannot be: what has accumulated is worth nothing."""


def add_gradients(group: ComputeGroup, batch: Batch, scale: float, ran_out: Callable[[int], None]) -> float:
    """As ComputeGroup.add_gradients, in as many pieces as memory asks for; `ran_out` is told each size that was too large.

    Returns the mean loss over the samples. Raises DeviceError when one sample finds no room, PartialGradients.
    """
    return _Piece(group, ran_out).add(batch, scale, tries=TRIES)


@dataclass(frozen=True)
class _Piece:
    group: ComputeGroup
    ran_out: Callable[[int], None]

    def add(self, batch: Batch, scale: float, *, tries: int) -> float:
        marks = _marks(self.group.parameters)
        loss = self._attempt(batch, scale)
        if loss is not None:
            return loss
        added = _moved(marks)
        self.ran_out(len(batch))
        gc.collect()
        self.group.empty_caches()
        if added and len(added) == len(marks):
            return self.group.loss(batch)  # it broke off when all was done
        with _left_out(added):
            loss = self._in_halves(batch, scale) if len(batch) > 1 else self._once_more(batch, scale, tries - 1)
        if added and not math.isfinite(loss):
            raise PartialGradients
        return loss

    def _attempt(self, batch: Batch, scale: float) -> float | None:
        """The loss, or None when memory did not suffice. The error goes with its frames, which hold activations."""
        try:
            return self.group.add_gradients(batch, scale)
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
            raise out_of_memory(self.group.name)
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
