"""Training at the lowest priority, and nothing else: the network's threads and processes must stay quick.

A thread lowered by an unprivileged process can never be raised again, so this is done once and for good, after the last
process of the network was forked: children inherit it. It must not know what the threads compute.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")


def lower_training(nice: int) -> None:
    """Lower the calling thread, and those that libraries have started for their computing, to `nice` (0..19).

    Threads of Python's own that run already are hivemind's and ours for the network, and stay as they are; those started
    later by the calling thread inherit from it.
    """
    if nice <= 0:
        return
    if sys.platform != "linux":
        os.nice(nice)  # the whole process, where a thread has no priority of its own; the network's were forked before
        return
    for thread in _computing():
        with contextlib.suppress(ProcessLookupError):
            _lower(thread, nice)


def _computing() -> set[int]:
    """This thread and the process's native ones: OpenMP's, and the GPU driver's."""
    threads = {int(entry.name) for entry in _TASKS.iterdir()}
    return (threads - {each.native_id for each in threading.enumerate()}) | {threading.get_native_id()}


def _lower(thread: int, nice: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, max(nice, os.getpriority(os.PRIO_PROCESS, thread)))
    with contextlib.suppress(PermissionError):  # it is in a lower class already, as when started with chrt --idle
        # no pre-emption on waking from a nap; not SCHED_IDLE, in which a thread of ours that holds the interpreter's lock
        # would keep the network's waiting for seconds while all cores are busy
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
