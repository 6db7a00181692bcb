"""Battery or mains, as UPower tells it: of all batteries and mains together, with word of every change.

Where UPower is not, or does not answer, the kernel's own word is taken.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from skep.adapters.linux.bus import PROPERTIES, Absent, Bus, Silent, Target
from skep.adapters.linux.system_service import ANSWER_SECONDS, ServiceSensor
from skep.adapters.sensors.battery import NO_BATTERY, on_battery
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import verbatim

_NAME: Final = "org.freedesktop.UPower"
_UPOWER: Final = Target(_NAME, "/org/freedesktop/UPower", _NAME)
_CARRIES_THE_COMPUTER: Final = (2, 3)
"""UPower's types of device that can keep a computer going: battery, and uninterruptible power supply."""


class UPowerSensor(ServiceSensor):
    """Tells BATTERY."""

    def __init__(self, answer_seconds: float = ANSWER_SECONDS) -> None:
        super().__init__("Battery, by UPower", (Condition.BATTERY,), _UPOWER, "UPower", answer_seconds)
        self._knows_battery: bool | None = None
        """Whether there is a battery, which UPower says when it changes; None while it must be asked."""

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself. The kernel, which is asked where UPower is not, does not."""
        return self._knows_battery is not None and super().tells

    def _listen(self, bus: Bus) -> None:
        bus.listen(Target(_NAME, _UPOWER.path, PROPERTIES), "PropertiesChanged", any_object=False)
        for signal in ("DeviceAdded", "DeviceRemoved"):
            bus.listen(_UPOWER, signal)

    def _hear(self, _signal: str, _body: tuple[Any, ...]) -> bool:
        self._knows_battery = None
        return True

    def _look(self) -> Seen:
        return {Condition.BATTERY: self._battery()}

    def _battery(self) -> Reading[bool]:
        try:
            if self._found(lambda bus: bus.get_all(_UPOWER)).get("OnBattery") is True:
                return answered(value=True, note=verbatim("UPower"))
            if self._knows_battery is None:
                self._knows_battery = self._found(_has_battery)
            return answered(value=False, note=verbatim("UPower")) if self._knows_battery else missing(NO_BATTERY)
        except Absent:
            return on_battery()
        except Silent as error:
            self._knows_battery = None
            told = on_battery()
            # a battery that only UPower knows must not be forgotten because UPower is silent
            return told if told.source is Source.ANSWERS else silent(error.reason)


def _has_battery(bus: Bus) -> bool:
    (paths,) = bus.call(_UPOWER, "EnumerateDevices")
    for path in paths:
        with suppress(Absent):  # it was taken away while we looked
            if _carries(bus.get_all(Target(_NAME, path, f"{_NAME}.Device"))):
                return True
    return False


def _carries(device: dict[str, Any]) -> bool:
    """Not the battery of a mouse, nor an empty bay."""
    powers = device.get("PowerSupply") is True and device.get("IsPresent") is True
    return powers and device.get("Type") in _CARRIES_THE_COMPUTER
