"""What a reading may be: a source that tells what cannot be is taken for silent. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from skep.core.conditions import Condition, Reading, Seen, Source, silent

_BOUNDS: Final[Mapping[Condition, tuple[float, float]]] = {
    Condition.INPUT: (0.0, 1e9),
    Condition.GPU_USE: (0.0, 1.0),
    Condition.PROCESSOR_USE: (0.0, 1.0),
    Condition.GPU_MEMORY: (0, 1e15),
    Condition.MEMORY: (0, 1e15),
    Condition.TEMPERATURE: (-50.0, 200.0),
    Condition.POWER: (0.0, 10_000.0),
}
"""Seconds, shares, bytes, degrees Celsius, watts. What is not here is yes or no."""

NAMES: Final[Mapping[Condition, str]] = {
    Condition.INPUT: "the time since the last input",
    Condition.LOCKED: "whether the screen is locked",
    Condition.FULL_SCREEN: "whether a full-screen program is open",
    Condition.INHIBITED: "whether a call or film is running",
    Condition.GPU_USE: "what other programs use of the GPU",
    Condition.PROCESSOR_USE: "what other programs use of the processor",
    Condition.GPU_MEMORY: "how much GPU memory is free",
    Condition.MEMORY: "how much memory is free",
    Condition.TEMPERATURE: "how warm the device is",
    Condition.POWER: "what the device draws",
    Condition.BATTERY: "whether this computer is on battery",
    Condition.METERED: "whether the connection is metered",
}
"""What each reading tells, as the end of a sentence."""


def unreadable(condition: Condition) -> str:
    """The sentence of a source that does not answer."""
    return f"This computer does not say {NAMES[condition]}."


def sensible(seen: Seen) -> Seen:
    """The same readings; those that tell what cannot be are silent."""
    return {condition: _checked(condition, reading) for condition, reading in seen.items()}


def _checked(condition: Condition, reading: Reading[Any]) -> Reading[Any]:
    match reading.source:
        case Source.ANSWERS:
            return reading if _may_be(condition, reading.value) else silent(unreadable(condition))
        case Source.SILENT:
            return silent(reading.note or unreadable(condition))
        case Source.MISSING:
            return reading


def _may_be(condition: Condition, value: Any) -> bool:
    if condition not in _BOUNDS:
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    lowest, highest = _BOUNDS[condition]
    return bool(lowest <= value <= highest)
