"""Memory that was freed, given back to the system: the C library keeps it for the next time otherwise.

On Linux with glibc, by mallopt(3) and malloc_trim(3); elsewhere nothing happens, and nothing is worse than it was.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

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
    """Have the system take what is free in this process: some milliseconds."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)
