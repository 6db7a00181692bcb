"""RAM of the worker: keeping some free for other programs, returning freed memory to the system, sharing it with forks.

The C library keeps freed memory for later allocations. On Linux with glibc, mallopt(3) and malloc_trim(3) change that;
on other systems `use_one_arena`, `map_large_blocks` and `give_back` do nothing. No large library is imported here, so
the worker starts quickly.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - holds a lock in forks: with its hook registered first, ours runs before
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakMethod

import psutil

from skep.core.errors import DeviceError
from skep.core.text import Text

if TYPE_CHECKING:
    import torch

LARGE_BYTES: Final = 1 << 20
"""Blocks of at least this size are mapped separately after `map_large_blocks`."""
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""M_MMAP_THRESHOLD and M_ARENA_MAX in malloc.h."""
_LIBRARY: Final[Any] = ctypes.CDLL(None) if sys.platform == "linux" else None


def use_one_arena() -> None:
    """From now on all threads of this process and of its forks share one arena: a pool of memory to allocate from.

    glibc makes up to eight per core, and each keeps free memory between blocks that are in use: the more arenas, the more
    memory. Call it before a second thread starts.
    """
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_ARENA_MAX, 1)


def map_large_blocks() -> None:
    """From now on this process maps each large block separately, so that freeing it returns it to the system.

    For processes that do not compute: every new mapping costs a page fault per page.
    """
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Return this process's free memory to the system. Takes milliseconds, or tens of them if much is free."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


class DroppedInForks:
    """Until `end`, and while the owner of the method `tensors` exists, forked processes drop the tensors that it returns.

    A forked process would otherwise keep its own copy of everything that this process writes to later. Only a weak
    reference to the owner is kept.
    """

    _over = False

    def __init__(self, tensors: Callable[[], Iterable[torch.Tensor]]) -> None:
        self._tensors = WeakMethod(tensors)
        os.register_at_fork(after_in_child=self._drop)

    def end(self) -> None:
        """From now on forked processes keep the tensors."""
        self._over = True

    def _drop(self) -> None:
        tensors = self._tensors()
        if tensors is None or self._over:
            return
        for tensor in [each for each in tensors() if each.device.type == "cpu"]:
            tensor.data = tensor.new_empty(0)
        give_back()


@contextmanager
def without_collecting() -> Iterator[None]:
    """Disable the garbage collector during imports, where it took a sixth of the time and found nothing.

    Afterwards all existing objects are exempt from collection, so forked processes keep sharing their memory.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_before_forks() -> None:
    """From now on a full garbage collection precedes each fork of this process, and each fork of its forks.

    A full collection also frees Python's lists of unused objects, which lie on hundreds of pages. Without this, each fork
    copies these pages at its own first full collection, minutes later.
    """
    os.register_at_fork(before=gc.collect)


GB: Final = 1_000_000_000
LOOK_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 10.0
"""How long memory may stay short after micro-batches were made smaller."""


def available() -> int:
    """Bytes that programs can allocate without swapping."""
    return int(psutil.virtual_memory().available)


@dataclass
class MemoryWatch:
    """Checks that `leave` bytes of RAM are free; 0 disables it. `look` returns free bytes, `clock` monotonic time."""

    leave: int
    look: Callable[[], int] = available
    clock: Callable[[], float] = time.monotonic
    _looked: float = -LOOK_SECONDS
    _short_since: float | None = None

    def enough(self) -> bool:
        """Whether there is enough left now."""
        return not self.leave or self.look() >= self.leave

    @property
    def short(self) -> bool:
        """Whether memory was short at the last check; checks about once a second.

        Raises DeviceError when it has been short for longer than PATIENCE_SECONDS.
        """
        now = self.clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if self.enough():
                self._short_since = None
            elif self._short_since is None:
                self._short_since = now
        if self._short_since is not None and now - self._short_since > PATIENCE_SECONDS:
            raise self.shortage()
        return self._short_since is not None

    def shortage(self) -> DeviceError:
        """The error, with a message for the user."""
        return DeviceError(
            Text("memory_watch.less_than_gb_computer_memory", leave=self.leave / GB),
            Text("memory_watch.skep_tries_again_later_close", setting="memory.leave_ram_gb"),
        )
