"""Sensors from services of the system bus: UPower, NetworkManager, and logind's announcement of sleep.

Each is queried once and then signals changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from skep.adapters.linux.bus import CHANGED, Bus, Target, Told, Unreachable
from skep.adapters.linux.logind import MANAGER
from skep.adapters.sensors.battery import NO_BATTERY, on_battery
from skep.adapters.sensors.sleep import SleepWatch
from skep.adapters.sensors.source import Absent, Line, LineSensor, Refused, Silent, SourceSensor
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import Text, verbatim
from skep.ports import Post

ANSWER_SECONDS: Final = 2.0
"""Time limit of an answer; a working service answers within milliseconds, but the bus may have to start it."""

_ANNOUNCED: Final = "PrepareForSleep"
"""logind's signal before a sleep, with True, and after it, with False."""


def _same_name(service: str) -> Target:
    """The object and the interface with the same name as the service."""
    return Target(service, "/" + service.replace(".", "/"), service)


class ServiceSensor(LineSensor[Bus]):
    """A sensor of one service, called `title` in messages.

    A service that has answered once and is not running any more is silent, not absent: its present value is unknown.
    """

    service: Target
    title: str
    signals: tuple[str, ...] = (CHANGED,)

    def __init__(self, address: str, answer_seconds: float = ANSWER_SECONDS) -> None:
        """`address` of the system bus."""
        super().__init__(Line(lambda: Bus(address, patience=answer_seconds, starts=True), self._listen))
        self._has_answered = False

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: whether the service is running and its signals arrive."""
        return self._has_answered and super().tells

    def _listen(self, bus: Bus) -> None:
        bus.listen(self.service, *self.signals, any_object=False)
        bus.listen_for_owner(self.service.service)

    def _reading(self) -> Reading[bool]:
        try:
            reading = self._line.ask(self._ask)
        except Refused as error:
            why = error.name.rpartition(".")[2]
            return self._silent(Text("system_bus.refuses_answer", title=self.title, error=why))
        except (Absent, Unreachable) as error:
            if not self._has_answered:
                return self._absent(error.reason)
            if self._line.opened is None:
                return self._silent(Text("system_bus.system_bus_cannot_reached", reason=error.reason))
            return self._silent(Text("system_bus.has_ended", title=self.title))
        except Silent:
            return self._silent(Text("system_bus.does_not_answer", title=self.title))
        self._has_answered = True
        return reading

    def _silent(self, reason: Text) -> Reading[bool]:
        return silent(reason)


class NetworkManagerSensor(ServiceSensor):
    """Whether the connection is metered."""

    name = "Connection, by NetworkManager"
    conditions = (Condition.METERED,)
    service = _same_name("org.freedesktop.NetworkManager")
    title = "NetworkManager"

    def _ask(self, bus: Bus) -> Reading[bool]:
        """From NetworkManager's NMMetered: 0 unknown, 1 yes, 2 no, 3 guess yes, 4 guess no."""
        match bus.get_all(self.service).get("Metered"):
            case 1 | 2 as metered:
                return answered(metered == 1, verbatim("NetworkManager"))
            case 3 | 4 as metered:
                return answered(metered == 3, Text("network_manager.networkmanager_guess"))  # noqa: PLR2004
            case _:
                return missing(Text("network_manager.networkmanager_does_not_know_whether"))

    def _absent(self, _reason: Text) -> Reading[bool]:
        return missing(Text("network_manager.there_no_networkmanager_here_alone"))


_CARRIES_THE_COMPUTER: Final = (2, 3)
"""UPower's device types that can power the computer: battery, and uninterruptible power supply."""


class UPowerSensor(ServiceSensor):
    """Battery or mains, from all of them together. Without an answer from UPower, the kernel's value is used."""

    name = "Battery, by UPower"
    conditions = (Condition.BATTERY,)
    service = _same_name("org.freedesktop.UPower")
    title = "UPower"
    signals = (CHANGED, "DeviceAdded", "DeviceRemoved")

    def __init__(
        self, address: str, answer_seconds: float = ANSWER_SECONDS, kernel: Callable[[], Reading[bool]] = on_battery
    ) -> None:
        super().__init__(address, answer_seconds)
        self._kernel = kernel
        self._knows_battery: bool | None = None
        """Whether there is a battery, which UPower signals on change; None while it must be queried."""

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself. The kernel, which replaces a missing UPower, does not signal changes."""
        return self._knows_battery is not None and super().tells

    def _is_news(self, _told: Told) -> bool:
        self._knows_battery = None
        return True

    def _ask(self, bus: Bus) -> Reading[bool]:
        if bus.get_all(self.service).get("OnBattery") is True:
            return answered(value=True, note=verbatim("UPower"))
        if self._knows_battery is None:
            self._knows_battery = self._has_battery(bus)
        return answered(value=False, note=verbatim("UPower")) if self._knows_battery else missing(NO_BATTERY)

    def _absent(self, _reason: Text) -> Reading[bool]:
        return self._kernel()

    def _silent(self, reason: Text) -> Reading[bool]:
        self._knows_battery = None
        told = self._kernel()
        # a battery that only UPower reports still exists when UPower is silent
        return told if told.source is Source.ANSWERS else silent(reason)

    def _has_battery(self, bus: Bus) -> bool:
        (paths,) = bus.call(self.service, "EnumerateDevices")
        for path in paths:
            with suppress(Absent):  # it was removed meanwhile
                if _carries(bus.get_all(Target(self.service.service, path, f"{self.service.interface}.Device"))):
                    return True
        return False


def _carries(device: dict[str, Any]) -> bool:
    """Whether the device powers the computer: not the battery of a mouse, nor an empty bay."""
    powers = device.get("PowerSupply") is True and device.get("IsPresent") is True
    return powers and device.get("Type") in _CARRIES_THE_COMPUTER


class LogindSleepWatch(SourceSensor):
    """Sleep of the computer as logind announces it, before and after; without an announcement the clocks still show it.

    Reports no condition; without a working logind only the announcement is missing.
    """

    conditions = ()

    def __init__(self, address: str, post: Post) -> None:
        """`address` of the system bus."""
        self._line = Line(lambda: Bus(address, patience=ANSWER_SECONDS, starts=True), self._listen)
        super().__init__(self._line)
        wait = super()._await
        self._watch = SleepWatch(post, lambda seconds: wait(time.monotonic() + seconds))
        self.name = self._watch.name

    def _look(self) -> Seen:
        self.name = self._watch.name
        with suppress(Absent, Silent):
            # an empty query, to open the connection over which the announcement arrives
            self._line.ask(lambda bus: bus.get_all(MANAGER))
            self.name = "Sleep, by logind"
        return self._watch.read()

    def _is_news(self, told: Told) -> bool:
        if told == (_ANNOUNCED, (True,)):
            self._watch.about_to_sleep()
        elif told == (_ANNOUNCED, (False,)):
            self._watch.awake()
        return True

    def _listen(self, bus: Bus) -> None:
        bus.listen(MANAGER, _ANNOUNCED, any_object=False)

    def _await(self, deadline: float) -> None:
        self._watch.wait(deadline - time.monotonic())
