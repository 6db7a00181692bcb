"""Memory that nobody needs any more, given back to the system: what was freed, and what was forked for nothing.

The C library keeps what is freed for the next time otherwise. On Linux with glibc it is told by mallopt(3) and malloc_trim(3);
elsewhere it is left to itself, and nothing is worse than it was.
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
"""What is at least so large is a tensor rather than a part of one."""
_MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD in malloc.h."""
_LIBRARY: Final[Any] = ctypes.CDLL(None) if sys.platform == "linux" else None


def return_large_at_once() -> None:
    """From now on this process maps each large block by itself, so that freeing it is giving it back.

    For a process that does not compute: a mapping costs a page fault for every page, each time.
    """
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Have the system take what is free in this process: milliseconds, or tens of them where much is."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


_kept_here: Final[list[WeakMethod[Callable[[], Iterable[torch.Tensor]]]]] = []


def keep_from_forks(tensors: Callable[[], Iterable[torch.Tensor]]) -> None:
    """Processes forked from now on hold nothing of the tensors that this method names at that time.

    Else whatever we write to them later, a forked process goes on holding as it was.
    """
    _kept_here.append(WeakMethod(tensors))


@torch.no_grad()
def _forget() -> None:
    named = [tensors for method in _kept_here if (tensors := method()) is not None]
    for tensor in [tensor for tensors in named for tensor in tensors() if tensor.device.type == "cpu"]:
        tensor.data = torch.empty(0, dtype=tensor.dtype)
    if named:
        give_back()


os.register_at_fork(after_in_child=_forget)
