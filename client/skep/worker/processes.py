"""The worker's own children: forked DHT and averager processes, p2pd. They must never outlive the worker."""

from __future__ import annotations

import contextlib
import ctypes
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


def keep_family_together() -> None:
    """Forked processes do not take our SIGTERM for theirs.

    Where the system can (Linux), they also die when we do, and orphans among them become our children.
    """
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.register_at_fork(after_in_child=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))


def fork_into_sessions() -> None:
    """Forked processes lead sessions of their own, so that they stay quick though ours stands back (`priority`)."""
    if sys.platform == "linux":
        os.register_at_fork(after_in_child=os.setsid)


def allow_many_files() -> None:
    """Open as many files as the system lets us: each tensor that processes share takes one, and desktops begin with 1024."""
    try:
        import resource  # noqa: PLC0415 - Windows has none, and no such limit
    except ImportError:
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if most == resource.RLIM_INFINITY else min(most, MANY_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems bear less than they promise
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def end_family() -> None:
    """Kill every descendant at once (the swarm was told before), and collect what is left of them."""
    deadline = time.monotonic() + REAP_SECONDS
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            _kill_children()  # each time: one may have started another (p2pd) since the last look
            time.sleep(0.005)


def _kill_children() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
