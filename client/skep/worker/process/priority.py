"""Training at the lowest priority, and nothing else: the network's threads and processes must stay quick.

A thread lowered by an unprivileged process can never be raised again, so this is done once and for good, after the last
process of the network was forked: children inherit it. The session of this process, in which the network's are not, stands
back while somebody needs the computer. It must not know what the threads compute.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")
_AUTOGROUP: Final = Path("/proc/self/autogroup")
SESSION_NICE: Final = 19
"""Of this process's session while it stands back: a weight of 15 beside the 1024 of another."""
ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.05
"""An unprivileged process is allowed a change when none was made on the whole computer for a tenth of a second."""


def lower_training(nice: int) -> None:
    """Lower the calling thread, and those that libraries have started for their computing, to `nice` (1..19).

    Threads of Python's own that run already are hivemind's and ours for the network, and stay as they are; those started
    later by the calling thread inherit from it.
    """
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


class SessionPriority:
    """How much this process's session weighs beside the others on this computer. May be told from any thread.

    Linux shares the processor among sessions first (autogroups in sched(7)), and a thread's nice value counts only within
    its own: a worker at nice 19 would get half of a core that the person's program needs. Where there are no autogroups,
    or somebody groups processes otherwise, this has no effect. A session that another process began is left as it is.
    """

    def __init__(self, *, present: bool) -> None:
        self._lock = threading.Lock()
        self._may = self._stands_back = False
        self._wanted = present

    def begin(self) -> None:
        """From now on there is something to stand back with: training begins."""
        self._may = _AUTOGROUP.exists() and os.getsid(0) == os.getpid()
        self._obey()

    def use(self, *, present: bool) -> None:
        """Stand back while somebody needs the computer, and no longer."""
        self._wanted = present
        self._obey()

    def leave(self) -> None:
        """What is left to do is to leave, quickly: weigh what others do, and never stand back again."""
        self.use(present=False)
        self._may = False

    def _obey(self) -> None:
        with self._lock:
            for _ in range(ATTEMPTS):
                wanted = self._wanted
                if not self._may or wanted == self._stands_back:
                    return
                try:
                    _AUTOGROUP.write_text(str(SESSION_NICE if wanted else 0))
                    self._stands_back = wanted
                except BlockingIOError:
                    time.sleep(PAUSE_SECONDS)
                except OSError:
                    self._may = False
