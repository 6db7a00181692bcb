"""The worker's processes: none outlives it, and training is at the lowest priority while the network stays quick.

The children are the DHT's and the averagers' processes (forked), and p2pd. A thread lowered by an unprivileged process can
never be raised again, so that is done once, after the last process of the network was forked: children inherit it. The
session of this process, in which the network's are not, stands back while somebody needs the computer.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
"""Both from Linux's prctl(2)."""
REAP_SECONDS: Final = 0.5
MANY_FILES: Final = 65_536
"""In each process; enough for a model of ten thousand tensors: parameters, gradients and two statistics each."""


def use_fork() -> None:
    """Have multiprocessing fork in this process, whatever the default of this Python and system is.

    hivemind starts its DHT and averagers as `multiprocessing.Process` objects that hold locks, which cannot be pickled:
    "spawn" (macOS, Windows) and "forkserver" (Linux from Python 3.14 on) raise "cannot pickle '_thread.lock' object".
    Call it before hivemind is imported, which makes locks of the context that is chosen at that time.
    """
    multiprocessing.set_start_method("fork", force=True)


def tie_to_this_process() -> None:
    """Forked processes get the default action for SIGTERM instead of this process's handler.

    On Linux they are also killed when this process ends, and their orphans become children of this process.
    """
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.register_at_fork(after_in_child=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))


def fork_into_sessions() -> None:
    """Each forked process leads a session of its own, so lowering this session's weight does not slow it (`SessionPriority`)."""
    if sys.platform == "linux":
        os.register_at_fork(after_in_child=os.setsid)


def raise_file_limit() -> None:
    """Raise the limit on open files: each tensor shared between processes takes one, and desktops start with 1024."""
    try:
        import resource  # noqa: PLC0415 - Windows has none, and no such limit
    except ImportError:
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if most == resource.RLIM_INFINITY else min(most, MANY_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS accepts less than the hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def kill_descendants() -> None:
    """Kill every descendant process and reap the direct children, for at most REAP_SECONDS."""
    deadline = time.monotonic() + REAP_SECONDS
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            # repeated, because one may have started another (p2pd) meanwhile
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.005)


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
    # this thread and the process's native ones: OpenMP's, and the GPU driver's
    pythons = {each.native_id for each in threading.enumerate()} - {threading.get_native_id()}
    for thread in {int(entry.name) for entry in _TASKS.iterdir()} - pythons:
        with contextlib.suppress(ProcessLookupError):
            _lower(thread, nice)


def _lower(thread: int, nice: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, max(nice, os.getpriority(os.PRIO_PROCESS, thread)))
    with contextlib.suppress(PermissionError):  # it is in a lower class already, as when started with chrt --idle
        # no pre-emption on waking from a nap; not SCHED_IDLE, in which a thread of ours that holds the interpreter's lock
        # would keep the network's waiting for seconds while all cores are busy
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def own_weight() -> Path | None:
    """Where the weight of this process's session is written; None without autogroups, or in another process's session."""
    return _AUTOGROUP if _AUTOGROUP.exists() and os.getsid(0) == os.getpid() else None


class SessionPriority:
    """How much this process's session weighs beside the others on this computer. May be told from any thread.

    Linux shares the processor among sessions first (autogroups in sched(7)), and a thread's nice value counts only within
    its own: a worker at nice 19 would get half of a core that the person's program needs. Where there are no autogroups,
    or somebody groups processes otherwise, this has no effect. A session that another process began is left as it is.
    """

    def __init__(self, *, present: bool, weight: Callable[[], Path | None] = own_weight) -> None:
        self._lock = threading.Lock()
        self._find_weight = weight
        self._weight: Path | None = None
        self._stands_back = False
        self._wanted = present

    def begin(self) -> None:
        """From now on there is something to stand back with: training begins."""
        self._weight = self._find_weight()
        self._obey()

    def use(self, *, present: bool) -> None:
        """Stand back while somebody needs the computer, and no longer."""
        self._wanted = present
        self._obey()

    def leave(self) -> None:
        """What is left to do is to leave, quickly: weigh what others do, and never stand back again."""
        self.use(present=False)
        self._weight = None

    def _obey(self) -> None:
        with self._lock:
            for _ in range(ATTEMPTS):
                wanted, weight = self._wanted, self._weight  # other threads change both
                if weight is None or wanted == self._stands_back:
                    return
                try:
                    weight.write_text(str(SESSION_NICE if wanted else 0))
                    self._stands_back = wanted
                except BlockingIOError:
                    time.sleep(PAUSE_SECONDS)
                except OSError:
                    self._weight = None
