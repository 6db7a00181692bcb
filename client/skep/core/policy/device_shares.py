"""What each of several devices may do: its own limits, and the share that its temperature leaves it. Pure.

Where each device has a copy of the model, each keeps its own ceiling: it gets fewer samples. Where one model is spread
over the devices they compute in step, so the lowest ceiling is that of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skep.core.device import kind_of
from skep.core.policy.conditions import Reading
from skep.core.policy.regulators import FULL, Heat
from skep.core.settings import device_limits
from skep.core.settings.setting import Value
from skep.core.settings.settings import DEFAULTS
from skep.core.text import Text

Settings = Mapping[str, Value]

_GB: Final = 1e9


def number_of(settings: Settings, key: str) -> float:
    """A setting as a number, its default where it is not one."""
    value = settings.get(key, DEFAULTS[key])
    return float(value) if isinstance(value, int | float) else float(DEFAULTS[key])


@dataclass(frozen=True)
class DeviceLimits:
    """What applies to one device: its largest share 0..1, its temperature cap, its power cap, and memory left free.

    Degrees Celsius, watts, and bytes; 0 watts are no power cap.
    """

    share: float
    celsius: float
    watts: float
    leave_memory: float


def limits_of(settings: Settings, device: str) -> DeviceLimits:
    """The limits of `device`, as ComputingDevice.id: its own, and for the rest those for all devices."""
    own = device_limits.read(str(settings.get("compute.device_limits", ""))).get(device, {})
    return DeviceLimits(
        share=own.get("%", 100.0) / 100,
        celsius=own.get("C", number_of(settings, "heat.cap_celsius")),
        watts=own.get("W", number_of(settings, "heat.power_cap_watts")),
        leave_memory=own.get("GB", number_of(settings, "memory.leave_gpu_gb")) * _GB,
    )


def value_of(reading: Reading[float], device: str) -> float | None:
    """The reading of `device`; that of all together where it is not told apart, so that no loop goes without one."""
    return reading.each.get(device, reading.each.get(kind_of(device), reading.value))


@dataclass(frozen=True)
class Ceiling:
    """The largest share 0..1 of a device, and why."""

    share: float
    reason: Text


def ceilings(settings: Settings, heats: Mapping[str, Heat]) -> Mapping[str, Ceiling]:
    """Of each device in `heats` that may not compute at full share, for its temperature or its own limit."""
    found = {}
    for device, heat in heats.items():
        limits = limits_of(settings, device)
        if heat.limit < limits.share:
            found[device] = Ceiling(heat.limit, Text("device.kept_below", cap=limits.celsius, share=heat.limit))
        elif limits.share < FULL:
            found[device] = Ceiling(limits.share, Text("device.your_limit", share=limits.share))
    return found


def heat_of_all(settings: Settings, heats: Mapping[str, Heat], *, in_step: bool) -> tuple[float, str]:
    """The share that temperatures leave all devices together, and the device that decides; FULL where they lower nothing."""
    own = {device: limits_of(settings, device).share for device in heats}
    share = of_all({device: min(own[device], heat.limit) for device, heat in heats.items()}, in_step=in_step)
    if share >= of_all(own, in_step=in_step):
        return FULL, ""
    warm = {device: heat.limit for device, heat in heats.items() if heat.limit < own[device]}
    return share, (min if in_step else max)(warm, key=warm.__getitem__)


def left_free(settings: Settings) -> dict[str, int]:
    """Bytes to leave free on each card that has a limit of its own for this."""
    own = device_limits.read(str(settings.get("compute.device_limits", "")))
    return {device: int(numbers["GB"] * _GB) for device, numbers in own.items() if "GB" in numbers}


def of_all(shares: Mapping[str, float], *, in_step: bool) -> float:
    """The share of all devices together: of those `in_step` the lowest, else the highest."""
    return (min if in_step else max)(shares.values(), default=FULL)
