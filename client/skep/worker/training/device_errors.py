"""What a device says when it has no memory to give, or is gone, in words. It must not decide what follows from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import torch

from skep.core.errors import DeviceError, DoesNotFit
from skep.core.text import Text

MAKE_ROOM: Final = Text("device.close_other_programs_use_memory")
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
            raise gone(device) from None
        raise


def out_of_memory(device: str) -> DeviceError:
    return DeviceError(
        Text("device.not_even_one_sample_finds", device=device),
        Text("device.skep_tries_again_later", make_room=MAKE_ROOM),
    )


def gone(device: str) -> DeviceError:
    return DeviceError(
        Text("device.stopped_working", device=device),
        Text("device.skep_tries_again_if_happens"),
    )
