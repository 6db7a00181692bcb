"""Which of a sensor's readings are worth telling: those that say something new. Pure.

A sensor is read several times a second and mostly says what it said before. The time since the last input grows by
itself, so only input is news, and that at most once a second while somebody keeps typing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skep.core.policy.conditions import Condition, Quantity, Reading, Seen, Source, Unit

INPUT_SECONDS: Final = 1.0
"""Between two words about input, at least."""


@dataclass(frozen=True)
class Told:
    """A reading as it was told; `at` is when it was taken, in seconds that only grow."""

    reading: Reading[Any]
    at: float


def news(told: Mapping[Condition, Told], seen: Seen, at: float) -> Seen:
    """Those of `seen`, read at `at`, that are worth telling after what was told already."""
    return {
        condition: reading
        for condition, reading in seen.items()
        if condition not in told or _is_news(condition, told[condition], Told(reading, at))
    }


def _is_news(condition: Condition, before: Told, after: Told) -> bool:
    old, new = _number(before.reading), _number(after.reading)
    if old is None or new is None:
        return before.reading != after.reading
    spec = condition.spec
    if not isinstance(spec, Quantity):
        return new != old
    if spec.unit is Unit.SECONDS_AGO:
        later = (after.at - new) - (before.at - old) > spec.step
        return later and (after.at - before.at >= INPUT_SECONDS or old >= INPUT_SECONDS)
    crossed = spec.limit is not None and (old > spec.limit) != (new > spec.limit)
    return crossed or abs(new - old) >= spec.step


def _number(reading: Reading[Any]) -> float | None:
    """What the source told, where it is a number that may be one; anything else is for others to judge."""
    value = reading.value
    if reading.source is not Source.ANSWERS or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None
