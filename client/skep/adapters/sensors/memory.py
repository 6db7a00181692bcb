"""Memory that is available to programs, as psutil reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psutil

from skep.adapters.sensors.source import Polled
from skep.core.policy.conditions import Condition, Seen, answered
from skep.core.text import Text


class MemorySensor(Polled):
    """Implements ports.Sensor. What counts is what programs can get without swapping, not what nobody has touched."""

    name = "RAM"
    conditions: Sequence[Condition] = (Condition.MEMORY,)

    def read(self) -> Seen:
        return {Condition.MEMORY: answered(psutil.virtual_memory().available, Text("battery.operating_system"))}


SENSOR: Final = MemorySensor
