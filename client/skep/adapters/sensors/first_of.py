"""Several sources of the same condition, from the best to the coarsest: the first that exists here tells.

It must not mix them: while the best one is silent, a coarser one could not show that nobody is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from skep.core.policy.conditions import Condition, Seen, Source, missing
from skep.core.text import sentences
from skep.ports import Sensor, TellsItself

LOOK_AGAIN_SECONDS: Final = 30.0
"""A better source may have come meanwhile, as a desktop that was still starting."""


class FirstOf:
    """Implements ports.Sensor over others that tell the same one condition."""

    def __init__(
        self, condition: Condition, sensors: Sequence[Sensor], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._condition, self._sensors, self._clock = condition, tuple(sensors), clock
        self._chosen: Sensor | None = None
        self._looked = 0.0

    @property
    def name(self) -> str:
        return (self._chosen or self._sensors[0]).name

    @property
    def conditions(self) -> Sequence[Condition]:
        return (self._condition,)

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
