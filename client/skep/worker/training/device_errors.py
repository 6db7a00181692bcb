"""Errors of a device that is out of memory or lost, and computing gradients in smaller pieces when memory runs out.

A backward pass that fails midway has added complete gradients to some parameters (of the last layers) and none to the
others: a parameter's gradient is added in one piece, when all its terms are known. So the halves of a micro-batch are
computed for the other parameters only, and each gradient is counted exactly once.
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
"""How often one sample is tried before memory counts as insufficient."""
PATIENCE_SECONDS: Final = 0.3
"""Pause before one sample is tried again: another process may free memory meanwhile."""
_NO_MEMORY: Final = (
    "not enough memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "CUDA error: out of memory",
)
_GONE: Final = ("CUDA error", "HIP error", "CUDA driver error", "cuDNN error", "CUBLAS_STATUS", "NVML", "MPS backend")


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether the error says that memory ran out; torch has several messages for it on the processor."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, OSError | RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def is_loss_of_device(error: BaseException) -> bool:
    """Whether the GPU or its driver stopped working for this process: nothing on the GPU is usable any more."""
    if is_lack_of_memory(error):
        return False
    if isinstance(error, torch.AcceleratorError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _GONE)


class NoRoom(DoesNotFit):
    """The model does not fit into a device's memory."""


@contextlib.contextmanager
def as_does_not_fit(title: str, device: str) -> Iterator[None]:
    """Raise NoRoom, with a message for the user, if the code inside runs out of memory."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        raise NoRoom(Text("device.does_not_fit_into_memory", title=title, device=device), MAKE_ROOM) from None


@contextlib.contextmanager
def as_device_error(device: str) -> Iterator[None]:
    """Raise DeviceError, with a message for the user, if the device named `device` fails in the code inside."""
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
    """Part of a micro-batch was added to `.grad` and the rest cannot be: the accumulated gradients are invalid."""


def add_gradients(group: ComputeGroup, batch: Batch, scale: float, ran_out: Callable[[int], None]) -> float:
    """As ComputeGroup.add_gradients, in as many pieces as memory requires; calls `ran_out` with each size that was too
    large.

    Returns the mean loss over the samples. Raises DeviceError when a single sample does not fit, and PartialGradients.
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
            return self.group.loss(batch)  # it failed after all gradients were added
        with _left_out(added):
            loss = self._in_halves(batch, scale) if len(batch) > 1 else self._once_more(batch, scale, tries - 1)
        if added and not math.isfinite(loss):
            raise PartialGradients
        return loss

    def _attempt(self, batch: Batch, scale: float) -> float | None:
        """The loss, or None when memory did not suffice. The error is dropped here: its frames hold activations."""
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
    """Marks by which later to detect that a parameter's gradient has changed."""
    # torch has no public name for `_version`
    return [(each, None if each.grad is None else each.grad._version) for each in parameters]  # noqa: SLF001


def _moved(marks: Marks) -> list[torch.nn.Parameter]:
    # `_version` as in `_marks`
    return [each for each, version in marks if each.grad is not None and each.grad._version != version]  # noqa: SLF001


@contextlib.contextmanager
def _left_out(parameters: Sequence[torch.nn.Parameter]) -> Iterator[None]:
    """A context in which no gradients are computed for `parameters`."""
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_()
