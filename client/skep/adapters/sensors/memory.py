"""Memory that is available to programs, as psutil reads it."""

from __future__ import annotations

from functools import partial
from typing import Final

import psutil

from skep.adapters.sensors.source import Asked
from skep.core.policy.conditions import Condition, Reading, answered
from skep.core.text import Text


def available() -> Reading[int]:
    """Bytes that programs can allocate without swapping, which is more than the unused memory."""
    return answered(psutil.virtual_memory().available, Text("battery.operating_system"))


SENSOR: Final = partial(Asked, "RAM", Condition.MEMORY, available)
