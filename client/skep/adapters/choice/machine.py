"""The sensors of the computer itself, chosen for the system skep runs on.

It must not know of the person in front of it, nor what follows from a reading.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from skep.adapters.gpu.device_sensor import DeviceSensor, choose
from skep.adapters.gpu.power_limit import ONLY_NVIDIA, Limiter, NvidiaLimiter
from skep.adapters.process.own_processes import OwnProcesses
from skep.adapters.sensors.battery import BatterySensor
from skep.adapters.sensors.processor import ProcessorSensor
from skep.adapters.sensors.sleep import SleepWatch
from skep.adapters.sensors.unavailable import Untold
from skep.core.device import Device, DeviceKind, PowerCap
from skep.core.policy.conditions import Condition
from skep.core.text import Text
from skep.ports import Devices, Post, Sensor

LimitedCard = tuple[str, Limiter]
"""A card by a name that stays while it is in its slot, and what limits its power."""


def sensors(post: Post, device: Callable[[], str], devices: Devices, ours: OwnProcesses) -> Sequence[Sensor]:
    """All of them; none is opened yet. `device` gives the setting compute.device, from any thread."""
    return (*_of_the_system(post), ProcessorSensor(ours), *_of_every_system(), DeviceSensor(device, devices, ours))


def _of_every_system() -> Sequence[Sensor]:
    """Those that the table of readings names."""
    named = (condition.spec.sensor for condition in Condition if condition.spec.sensor)
    return [import_module(f"skep.adapters.sensors.{each}").SENSOR() for each in named]


def _of_the_system(post: Post) -> Sequence[Sensor]:
    if sys.platform == "linux":
        # jeepney is installed on Linux only
        from skep.adapters.linux.logind_sleep import LogindSleepWatch  # noqa: PLC0415
        from skep.adapters.linux.network_manager import NetworkManagerSensor  # noqa: PLC0415
        from skep.adapters.linux.upower import UPowerSensor  # noqa: PLC0415

        return (UPowerSensor(), NetworkManagerSensor(), LogindSleepWatch(post))
    note = Text("machine.system_does_not_tell_programs")
    return (BatterySensor(), Untold("Connection", (Condition.METERED,), note), SleepWatch(post))


def power_cap(device: Device) -> PowerCap | None:
    """Whether and how the device's power can be limited; None for the processor, which has no such limit."""
    match device.kind:
        case DeviceKind.CPU:
            return None
        case DeviceKind.NVIDIA:
            return PowerCap(refused=device.unusable) if device.unusable else NvidiaLimiter(device.index).look()
        case DeviceKind.AMD | DeviceKind.APPLE:
            return PowerCap(refused=ONLY_NVIDIA)


def limited_card(devices: Devices, wanted: str) -> LimitedCard | None:
    """The card that trains, as the setting compute.device says; None where its power cannot be limited by skep."""
    device = choose(devices.list(), wanted)
    if device.kind is not DeviceKind.NVIDIA:
        return None
    return f"{device.name}, {device.kind}:{device.index}", NvidiaLimiter(device.index)
