"""Battery or mains, as the operating system tells it without any service: the kernel, macOS, Windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psutil

from skep.adapters.machine.polled import Polled
from skep.core.conditions import Condition, Reading, Seen, answered, missing, silent

NO_BATTERY: Final = "This computer has no battery."


def on_battery() -> Reading[bool]:
    """Of several batteries psutil takes the first, and the mains where there are any."""
    # psutil leaves the function out on systems without batteries it can read
    read = getattr(psutil, "sensors_battery", None)
    try:
        battery = read() if read else None
    except OSError as error:
        return silent(f"The battery cannot be read: {error.strerror}.")
    if battery is None:
        return missing(NO_BATTERY)
    if battery.power_plugged is None:
        return silent("The battery does not say whether the computer runs on it.")
    return answered(not battery.power_plugged, "the operating system")


class BatterySensor(Polled):
    """Implements ports.Sensor."""

    name = "Battery, by the operating system"
    conditions: Sequence[Condition] = (Condition.BATTERY,)

    def read(self) -> Seen:
        return {Condition.BATTERY: on_battery()}
