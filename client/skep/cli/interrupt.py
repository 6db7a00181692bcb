"""Handling of SIGINT, SIGTERM and SIGHUP as requests to leave, and of SIGINT while modules are loaded. Main thread only."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final, Self

INTERRUPTED: Final = 130
"""Exit code of what Ctrl-C ended, as shells know it."""
INSIST: Final = 3
"""From this many signals on, something hangs, and KeyboardInterrupt is raised where the main thread stands."""


class Interrupts(ExitStack):
    """While entered, each of the three signals adds to `count` and asks this process to end, as `ask` does.

    `on_ask` is called at each signal, wherever the main thread stands: it must do next to nothing and take no lock, which
    the main thread may hold. `threading.Event.set` takes one.
    """

    def __init__(self, on_ask: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.asked = False
        self._on_ask, self.count = on_ask, 0
        self._requests: queue.SimpleQueue[None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.callback(signal.signal, number, signal.signal(number, self._seen))
        return super().__enter__()

    def ask(self) -> None:
        """Have `wait` return; from any thread."""
        self.asked = True
        self._requests.put(None)  # reentrant, so a signal may come during a `wait`

    def wait(self) -> None:
        """Return when a signal came, or `ask` was called."""
        self._requests.get()

    def _seen(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.ask()
        self._on_ask()
        if self.count >= INSIST:
            raise KeyboardInterrupt


@contextmanager
def ends_at_once() -> Iterator[None]:
    """While entered, Ctrl-C ends this process with INTERRUPTED and prints nothing: for loading modules before anything has begun.

    Python prints and forgets a KeyboardInterrupt that is raised where it only tidies up after an import. A handler other
    than Python's own stays, and so does an ignored signal.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
