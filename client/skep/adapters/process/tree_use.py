"""What the processes of a worker use: memory, threads and descriptors of the whole tree."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

from skep.core.policy.growth import Use


def use_of(processes: Iterable[psutil.Process]) -> Use:
    """What `processes` use; one that has ended meanwhile, or may not be read, uses nothing.

    Memory is the proportional set size on Linux, which counts shared pages once, with what was swapped out: what leaks
    is never touched again. Elsewhere memory that processes share is left out. Descriptors are known on Linux only.
    """
    memory, threads, descriptors = 0, 0, 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            memory += _memory(process)
            threads += process.num_threads()
            descriptors = max(descriptors, _descriptors(process))
    return Use(memory, threads, descriptors)


def _memory(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Pss:", "SwapPss:")))


def _descriptors(process: psutil.Process) -> float:
    if sys.platform != "linux":
        return 0.0
    most, _ = process.rlimit(psutil.RLIMIT_NOFILE)
    return 0.0 if most == psutil.RLIM_INFINITY else process.num_fds() / most
