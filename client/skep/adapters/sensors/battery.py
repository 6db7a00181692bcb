"""Battery or mains, from the operating system without a service: the Linux kernel, macOS, Windows."""

from __future__ import annotations

from typing import Final

import psutil

from skep.core.policy.conditions import Reading, answered, missing, silent
from skep.core.text import Text

NO_BATTERY: Final = Text("battery.computer_has_no_battery")


def on_battery() -> Reading[bool]:
    """Whether the computer runs on battery. Of several batteries psutil uses the first, and mains take precedence."""
    # psutil omits the function on systems where it cannot read batteries
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
