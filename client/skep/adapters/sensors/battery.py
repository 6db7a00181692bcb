"""Battery or mains, as the operating system tells it without any service: the kernel, macOS, Windows."""

from __future__ import annotations

from typing import Final

import psutil

from skep.core.policy.conditions import Reading, answered, missing, silent
from skep.core.text import Text

NO_BATTERY: Final = Text("battery.computer_has_no_battery")


def on_battery() -> Reading[bool]:
    """Of several batteries psutil takes the first, and the mains where there are any."""
    # psutil leaves the function out on systems without batteries it can read
    read = getattr(psutil, "sensors_battery", lambda: None)
    try:
        battery = read()
    except OSError as error:
        return silent(Text("battery.battery_cannot_read", strerror=str(error.strerror)))
    if battery is None:
        return missing(NO_BATTERY)
    if battery.power_plugged is None:
        return silent(Text("battery.battery_does_not_say_whether"))
    return answered(not battery.power_plugged, Text("battery.operating_system"))
