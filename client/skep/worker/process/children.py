"""The worker's child processes: the DHT's and the averagers' (forked), and p2pd. None of them outlives the worker."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
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
    """Each forked process leads a session of its own, so lowering this session's weight does not slow it (`priority`)."""
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
            _kill_children()  # repeated, because one may have started another (p2pd) meanwhile
            time.sleep(0.005)


def _kill_children() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
