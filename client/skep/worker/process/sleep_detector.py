"""Detects that the computer slept, or that this process was stopped: the clock went on while nothing was done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

GAP_SECONDS: Final = 5.0
"""A longer time between two calls of `gap` counts as sleep; after anything known to take longer, call `restart`."""


def suspend_aware_clock() -> float:
    """Seconds, counted during sleep too. The wall clock only where there is no other, because it can be set."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boot is None else time.clock_gettime(boot)


class SleepDetector:
    """For use in one thread that calls `gap` often."""

    def __init__(self, clock: Callable[[], float] = suspend_aware_clock) -> None:
        self._clock = clock
        self._looked = clock()

    def gap(self, longest: float = 0.0) -> float:
        """Seconds since the last call if the computer slept meanwhile, else 0. One piece of work may take `longest` s."""
        now = self._clock()
        passed, self._looked = now - self._looked, now
        return passed if passed > GAP_SECONDS + longest else 0.0

    def restart(self) -> None:
        """The time since the last call was work that is known to take long."""
        self._looked = self._clock()
