"""The sensors of the computer itself, chosen for the system skep runs on.

It must not know of the person in front of it, nor what follows from a reading.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from skep.adapters.machine.battery import BatterySensor
from skep.adapters.machine.device import DeviceSensor, choose
from skep.adapters.machine.memory import MemorySensor
from skep.adapters.machine.own_processes import OwnProcesses
from skep.adapters.machine.power_limit import ONLY_NVIDIA, Limiter, NvidiaLimiter
from skep.adapters.machine.processor import ProcessorSensor
from skep.adapters.machine.sleep import SleepWatch
from skep.adapters.machine.untold import Untold
from skep.core.conditions import Condition
from skep.core.model import Device, DeviceKind, PowerCap
from skep.ports import Devices, Post, Sensor

LimitedCard = tuple[str, Limiter]
"""A card by a name that stays while it is in its slot, and what limits its power."""


def sensors(post: Post, device: Callable[[], str], devices: Devices, ours: OwnProcesses) -> Sequence[Sensor]:
    """All of them; none is opened yet. `device` gives the setting compute.device, from any thread."""
    return (*_of_the_system(post), ProcessorSensor(ours), MemorySensor(), DeviceSensor(device, devices, ours))


def _of_the_system(post: Post) -> Sequence[Sensor]:
    if sys.platform == "linux":
        # jeepney is installed on Linux only
        from skep.adapters.machine.logind import LogindSleepWatch  # noqa: PLC0415
        from skep.adapters.machine.network_manager import NetworkManagerSensor  # noqa: PLC0415
        from skep.adapters.machine.upower import UPowerSensor  # noqa: PLC0415

        return (UPowerSensor(), NetworkManagerSensor(), LogindSleepWatch(post))
    note = "This system does not tell programs like skep whether a connection is metered."
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
