"""Free RAM, as the operating system tells it."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from skep.adapters.machine.polled import Polled
from skep.core.conditions import Condition, Seen, answered


class MemorySensor(Polled):
    """Implements ports.Sensor. What counts is what programs can get without swapping, not what nobody has touched."""

    name = "RAM"
    conditions: Sequence[Condition] = (Condition.MEMORY,)

    def read(self) -> Seen:
        return {Condition.MEMORY: answered(psutil.virtual_memory().available, "the operating system")}
