"""The worker's child processes and priorities: children end with the worker; training has the lowest priority.

The children are the DHT's and the averagers' processes (forked), and p2pd. An unprivileged process cannot raise a
thread's priority again, so it is lowered once, after the last network process was forked: children inherit it. The
session of this process, which excludes the network's processes, gets a lower weight while the computer is in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
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
"""Open files per process; enough for a model of ten thousand tensors: parameters, gradients and two statistics each."""


def use_fork() -> None:
    """Make multiprocessing fork in this process, regardless of the default of this Python and system.

    A fork's garbage collection leaves out what it inherits: it would end groups of devices that are garbage here, and wait
    for ever for their threads, which only this process has.

    hivemind starts its DHT and averagers as `multiprocessing.Process` objects that hold locks, which cannot be pickled:
    "spawn" (macOS, Windows) and "forkserver" (Linux from Python 3.14 on) raise "cannot pickle '_thread.lock' object".
    Call it before hivemind is imported, which creates locks of the context that is set at that time.
    """
    multiprocessing.set_start_method("fork", force=True)
    os.register_at_fork(after_in_child=gc.freeze)


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
    """Give each fork its own session, so that lowering this session's weight does not slow it (`SessionPriority`)."""
    if sys.platform == "linux":
        os.register_at_fork(after_in_child=os.setsid)


def raise_file_limit() -> None:
    """Raise the limit on open files: most tensors that processes share take one each, and desktops start with 1024."""
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
            # repeated, because a child may have started another process (p2pd) meanwhile
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.005)


_TASKS: Final = Path("/proc/self/task")
_AUTOGROUP: Final = Path("/proc/self/autogroup")
SESSION_NICE: Final = 19
"""Of this process's session while the computer is in use: a weight of 15, where the default is 1024."""
ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.05
"""An unprivileged process may change a weight only if none was changed on this computer for 0.1 seconds."""


def lower_training(nice: int) -> None:
    """Lower the calling thread, and the compute threads that libraries have started, to `nice` (1..19).

    Other Python threads that run already serve the network, in hivemind and skep, and keep their priority; threads
    started later by the calling thread inherit its priority.
    """
    if sys.platform != "linux":
        # the whole process: threads have no separate priority; the network's processes were forked before
        os.nice(nice)
        return
    # this thread and the process's native ones: OpenMP's, and the GPU driver's
    pythons = {each.native_id for each in threading.enumerate()} - {threading.get_native_id()}
    for thread in {int(entry.name) for entry in _TASKS.iterdir()} - pythons:
        with contextlib.suppress(ProcessLookupError):
            _lower(thread, nice)


def _lower(thread: int, nice: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, max(nice, os.getpriority(os.PRIO_PROCESS, thread)))
    # it is in a lower class already, for example when started with chrt --idle
    with contextlib.suppress(PermissionError):
        # no pre-emption on waking from a nap; not SCHED_IDLE, where a thread that holds the GIL would block the
        # network's threads for seconds while all cores are busy
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def own_weight() -> Path | None:
    """The file with the weight of this process's session; None without autogroups, or in another process's session."""
    return _AUTOGROUP if _AUTOGROUP.exists() and os.getsid(0) == os.getpid() else None


class SessionPriority:
    """The scheduler weight of this process's session. Methods may be called from any thread.

    Linux shares the processor among sessions first (autogroups in sched(7)), and a thread's nice value counts only
    within its session: a worker at nice 19 would get half of a core that the user's program needs. Without autogroups,
    or if cgroups are used instead, this has no effect. A session that another process began is not changed.
    """

    def __init__(self, *, present: bool, weight: Callable[[], Path | None] = own_weight) -> None:
        self._lock = threading.Lock()
        self._find_weight = weight
        self._weight: Path | None = None
        self._lowered = False
        self._wanted = present

    def begin(self) -> None:
        """Apply the weight from now on: training begins."""
        self._weight = self._find_weight()
        self._obey()

    def use(self, *, present: bool) -> None:
        """Lower the weight while the computer is in use, else restore it."""
        self._wanted = present
        self._obey()

    def leave(self) -> None:
        """Restore the default weight permanently, so that the worker exits quickly."""
        self.use(present=False)
        self._weight = None

    def _obey(self) -> None:
        with self._lock:
            for _ in range(ATTEMPTS):
                wanted, weight = self._wanted, self._weight  # other threads change both
                if weight is None or wanted == self._lowered:
                    return
                try:
                    weight.write_text(str(SESSION_NICE if wanted else 0))
                    self._lowered = wanted
                except BlockingIOError:
                    time.sleep(PAUSE_SECONDS)
                except OSError:
                    self._weight = None
