"""Ctrl-C and its kin as one call: SIGINT, SIGTERM and SIGHUP ask to leave politely. Main thread only."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

INTERRUPTED: Final = 130
"""Exit code of what Ctrl-C ended, as shells know it."""
INSIST: Final = 3
"""From this many signals on, something hangs, and KeyboardInterrupt is raised where the main thread stands."""


class Interrupts:
    """While entered, each of the three signals sets `asked` and calls `on_ask`, which must do next to nothing."""

    def __init__(self, on_ask: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self._on_ask = on_ask
        self._count = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._seen)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _seen(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        self.asked = True
        self._on_ask()
        if self._count >= INSIST:
            raise KeyboardInterrupt
