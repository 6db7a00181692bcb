"""A deadline for what blocks in a library: NCCL waits for a rank that hangs while ranks connect, whatever its timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LOOK_SECONDS: Final = 0.25


@contextmanager
def watched(seconds: float, late: Callable[[], object]) -> Iterator[None]:
    """A context; `late` is called once, from another thread, when it has not ended after `seconds`.

    Time in which this process did not run counts as LOOK_SECONDS at most.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(seconds, over, late), name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def _watch(seconds: float, over: threading.Event, late: Callable[[], object]) -> None:
    for _ in range(round(seconds / LOOK_SECONDS)):
        if over.wait(LOOK_SECONDS):
            return
    if not over.is_set():
        late()
