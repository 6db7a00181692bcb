"""The stacks of all threads of a process, written to the log: where it hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from typing import Final

WRITING_SECONDS: Final = 0.5
"""How long another process may take to write its stacks, before it is ended."""


def write_on_request() -> None:
    """Write the stacks to stderr at SIGUSR1, also while a thread in C holds the interpreter.

    Processes that this one forks from now on do so too.
    """
    if hasattr(faulthandler, "register"):  # not on Windows, which has no such signal
        faulthandler.register(signal.SIGUSR1, all_threads=True)


def write() -> None:
    """Write this process's stacks to stderr, if it can be written."""
    with contextlib.suppress(OSError, ValueError):
        faulthandler.dump_traceback(all_threads=True)


def request(pid: int) -> None:
    """Let a child process write its stacks: one that was forked after `write_on_request`. Any other would end."""
    if hasattr(faulthandler, "register"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(WRITING_SECONDS)  # nothing tells when it has written them, and one that is stopped never does
