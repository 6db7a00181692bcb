"""Memory given back to the system: what the C library keeps after it was freed, and what forked processes do not need.

The C library keeps freed memory for later allocations. On Linux with glibc, mallopt(3) and malloc_trim(3) change that; on
other systems these functions do nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import WeakMethod

import torch

LARGE_BYTES: Final = 1 << 20
"""Blocks of at least this size are mapped one by one after `map_large_blocks`."""
_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD in malloc.h."""
_LIBRARY: Final[Any] = ctypes.CDLL(None) if sys.platform == "linux" else None


def map_large_blocks() -> None:
    """From now on this process maps each large block separately, so that freeing it returns it to the system.

    For processes that do not compute: every new mapping costs a page fault per page.
    """
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Return this process's free memory to the system. Takes milliseconds, tens of them where much is free."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


class DroppedInForks:
    """While the owner of the method `tensors` lives, processes forked from this one drop the tensors that it names.

    A forked process would otherwise keep its own copy of everything that this process writes to later. Only a weak
    reference to the owner is kept.
    """

    def __init__(self, tensors: Callable[[], Iterable[torch.Tensor]]) -> None:
        self._tensors = WeakMethod(tensors)
        os.register_at_fork(after_in_child=self._drop)

    @torch.no_grad()
    def _drop(self) -> None:
        tensors = self._tensors()
        if tensors is None:
            return
        for tensor in [each for each in tensors() if each.device.type == "cpu"]:
            tensor.data = torch.empty(0, dtype=tensor.dtype)
        give_back()
