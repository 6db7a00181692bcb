"""The time since the last input: checking a source's value for plausibility, and choosing among several sources."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

from skep.clocks import since_boot
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import Text, sentences
from skep.ports import Sensor, TellsItself

SLACK_SECONDS: Final = 5.0
"""How far a source may be ahead of the clock: queries are delayed, and some sources round up."""
_LONGEST: Final = 10 * 365 * 86400.0


def longest_seconds() -> float:
    """The longest possible time since the last input."""
    return since_boot() if hasattr(time, "CLOCK_BOOTTIME") else _LONGEST


class IdleJudge:
    """Turns a source's value into a reading. Time without input cannot grow faster than the clock.

    An implausible value becomes silent, so that a computer in use does not count as unused.
    """

    def __init__(
        self,
        source: Text,
        *,
        clock: Callable[[], float] = since_boot,
        longest: Callable[[], float] = longest_seconds,
    ) -> None:
        self._source, self._clock, self._longest = source, clock, longest
        self._last: tuple[float, float] | None = None

    def judge(self, seconds: float) -> Reading[float]:
        """The reading for `seconds` since the last input by the source; silent if implausible."""
        now = self._clock()
        if not math.isfinite(seconds) or seconds < 0:
            return silent(Text("activity.last_input_impossible", source=self._source, seconds=seconds))
        possible = self._longest() if self._last is None else self._last[1] + now - self._last[0]
        if seconds > possible + SLACK_SECONDS:
            # the bound grows only with the clock, so that a repeated wrong value does not become plausible
            return silent(Text("activity.last_input_too_long_ago", source=self._source, seconds=seconds))
        self._last = (now, seconds)
        return answered(seconds, self._source)

    def forget(self) -> None:
        """Drop earlier values, because the source has changed."""
        self._last = None


LOOK_AGAIN_SECONDS: Final = 30.0
"""Interval of the search for a better source, such as a desktop that was still starting."""


class FirstOf:
    """Implements ports.Sensor over others that report the same condition, from the best to the coarsest.

    The first that exists here is used. They are not combined: while the best one is silent, a coarser one cannot show
    that the computer is not in use.
    """

    def __init__(
        self, condition: Condition, sensors: Sequence[Sensor], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.conditions = (condition,)
        self._condition, self._sensors, self._clock = condition, tuple(sensors), clock
        self._chosen: Sensor | None = None
        self._looked = 0.0

    @property
    def name(self) -> str:
        return (self._chosen or self._sensors[0]).name

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return isinstance(self._chosen, TellsItself) and self._chosen.tells

    def read(self) -> Seen:
        if self._chosen is not None and self._clock() - self._looked < LOOK_AGAIN_SECONDS:
            seen = self._chosen.read()
            if seen[self._condition].source is not Source.MISSING:
                return seen
        return self._choose()

    def _choose(self) -> Seen:
        before, self._chosen, self._looked = self._chosen, None, self._clock()
        notes = []
        for sensor in self._sensors:
            seen = sensor.read()
            if seen[self._condition].source is not Source.MISSING:
                self._chosen = sensor
                if before is not None and before is not sensor:
                    before.close()
                return seen
            notes.append(seen[self._condition].note)
        return {self._condition: missing(sentences(*notes))}

    def wait(self, seconds: float) -> None:
        (self._chosen or self._sensors[0]).wait(seconds)

    def close(self) -> None:
        for sensor in self._sensors:
            sensor.close()
