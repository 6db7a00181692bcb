"""Whether a time since the last input can be true.

A source that lies is as good as silent: what it says must not make a computer in use look deserted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from skep.core.policy.conditions import Reading, answered, silent
from skep.core.text import Text

SLACK_SECONDS: Final = 5.0
"""How much faster than the clock a source may count: it is asked late, and some round up."""
_LONGEST: Final = 10 * 365 * 86400.0


def running_seconds() -> float:
    """Seconds since this computer started, sleep included where the system counts it; they only grow."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def longest_seconds() -> float:
    """No input can be longer ago than this."""
    return running_seconds() if hasattr(time, "CLOCK_BOOTTIME") else _LONGEST


class IdleJudge:
    """Turns what a source says into a reading. Time without input grows no faster than time itself."""

    def __init__(
        self,
        source: Text,
        *,
        clock: Callable[[], float] = running_seconds,
        longest: Callable[[], float] = longest_seconds,
    ) -> None:
        self._source, self._clock, self._longest = source, clock, longest
        self._last: tuple[float, float] | None = None

    def judge(self, seconds: float) -> Reading[float]:
        """`seconds` since the last input as the source says; silent when that cannot be."""
        now = self._clock()
        if not math.isfinite(seconds) or seconds < 0:
            return silent(Text("activity.says_last_input_was_s", source=self._source, seconds=seconds))
        if seconds > self._possible(now) + SLACK_SECONDS:
            # the bound stays and grows with the clock, so that the lie does not become true by being repeated
            return silent(Text("activity.says_last_input_was_s_2", source=self._source, seconds=seconds))
        self._last = (now, seconds)
        return answered(seconds, self._source)

    def _possible(self, now: float) -> float:
        if self._last is None:
            return self._longest()
        then, seconds = self._last
        return seconds + now - then

    def forget(self) -> None:
        """The source is another one from now on."""
        self._last = None
