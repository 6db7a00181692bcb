"""Which processes are skep's own, and so never "another program".

A terminal that skep was started from is not skep: what fills the screen there is the person's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import psutil

IsOurs = Callable[[int], bool]
"""Whether the process of this id is skep's."""


def is_our_process(pid: int) -> bool:
    """Whether it is this process or one below it."""
    if pid == os.getpid():
        return True
    with suppress(psutil.Error):
        return any(parent.pid == os.getpid() for parent in psutil.Process(pid).parents())
    return False
