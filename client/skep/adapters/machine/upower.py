"""Battery or mains, as UPower tells it: of all batteries and mains together, with word of every change.

Where UPower is not, or does not answer, the kernel's own word is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jeepney import MatchRule

from skep.adapters.machine.battery import NO_BATTERY, on_battery
from skep.adapters.machine.system_bus import ANSWER_SECONDS, BusService, NotAnswering, NotThere
from skep.core.conditions import Condition, Reading, Seen, Source, answered, missing, silent

_NAME: Final = "org.freedesktop.UPower"
_PATH: Final = "/org/freedesktop/UPower"
_CARRIES_THE_COMPUTER: Final = (2, 3)
"""UPower's types of device that can keep a computer going: battery, and uninterruptible power supply."""


class UPowerSensor:
    """Implements ports.Sensor."""

    name = "Battery, by UPower"
    conditions: Sequence[Condition] = (Condition.BATTERY,)

    def __init__(self, answer_seconds: float = ANSWER_SECONDS) -> None:
        signals = (
            MatchRule(
                type="signal",
                sender=_NAME,
                path=_PATH,
                interface="org.freedesktop.DBus.Properties",
                member="PropertiesChanged",
            ),
            MatchRule(type="signal", sender=_NAME, interface=_NAME, member="DeviceAdded"),
            MatchRule(type="signal", sender=_NAME, interface=_NAME, member="DeviceRemoved"),
        )
        self._upower = BusService(_NAME, "UPower", signals, answer_seconds)
        self._knows_battery: bool | None = None
        """Whether there is a battery, which UPower says when it changes; None while it must be asked."""

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself. The kernel, which is asked where UPower is not, does not."""
        return self._knows_battery is not None and self._upower.tells

    def read(self) -> Seen:
        if self._upower.heard():
            self._knows_battery = None
        return {Condition.BATTERY: self._read()}

    def wait(self, seconds: float) -> None:
        self._upower.wait(seconds)

    def close(self) -> None:
        self._upower.close()

    def _read(self) -> Reading[bool]:
        try:
            if self._upower.properties(_PATH, _NAME).get("OnBattery") is True:
                return answered(value=True, note="UPower")
            if self._knows_battery is None:
                self._knows_battery = self._has_battery()
            return answered(value=False, note="UPower") if self._knows_battery else missing(NO_BATTERY)
        except NotThere:
            return on_battery()
        except NotAnswering as error:
            self._knows_battery = None
            told = on_battery()
            # a battery that only UPower knows must not be forgotten because UPower is silent
            return told if told.source is Source.ANSWERS else silent(str(error))

    def _has_battery(self) -> bool:
        (paths,) = self._upower.call(_PATH, _NAME, "EnumerateDevices")
        return any(_carries(self._upower.properties(path, f"{_NAME}.Device")) for path in paths)


def _carries(device: dict[str, Any]) -> bool:
    """Not the battery of a mouse, nor an empty bay."""
    powers = device.get("PowerSupply") is True and device.get("IsPresent") is True
    return powers and device.get("Type") in _CARRIES_THE_COMPUTER
