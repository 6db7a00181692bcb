"""Notices that the computer slept, or that this process was stopped: time went on and nothing was done.

It must not decide what follows from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

GAP_SECONDS: Final = 5.0
"""Between two looks; what may honestly take longer is followed by `expected`."""


def awake_and_asleep() -> float:
    """Seconds that go on while the computer sleeps. Not the wall clock where there is another, which may be set."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boot is None else time.clock_gettime(boot)


class Gaps:
    """For use in one thread, which looks often."""

    def __init__(self, clock: Callable[[], float] = awake_and_asleep) -> None:
        self._clock = clock
        self._looked = clock()

    def look(self, longest: float = 0.0) -> float:
        """Seconds since the last look where they are a gap, else 0. `longest` is what one piece of work may take."""
        now = self._clock()
        passed, self._looked = now - self._looked, now
        return passed if passed > GAP_SECONDS + longest else 0.0

    def expected(self) -> None:
        """Whatever took long just now was no gap."""
        self._looked = self._clock()
