"""What each of several devices may do: its own limits, and the share that its temperature leaves it. Pure.

Where each device has a copy of the model, each keeps its own ceiling: it gets fewer samples. Where one model is spread
over the devices they compute in step, so the lowest ceiling is that of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skep.core.device import kind_of
from skep.core.policy.conditions import Condition, Conditions, Reading
from skep.core.policy.regulators import FULL, Heat
from skep.core.settings import device_limits
from skep.core.settings.setting import Value
from skep.core.settings.settings import DEFAULTS

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
    """The reading of `device` where it is told; that of all else, as where there is only one."""
    return reading.each.get(device, reading.each.get(kind_of(device))) if reading.each else reading.value


def ceilings(settings: Settings, heat: Mapping[str, Heat]) -> Mapping[str, float]:
    """The largest share 0..1 of each device in `heat`."""
    return {device: min(limits_of(settings, device).share, state.limit) for device, state in heat.items()}


def below_full(settings: Settings, heat: Mapping[str, Heat]) -> Mapping[str, float]:
    """Those of `ceilings` that are below 1."""
    return {device: share for device, share in ceilings(settings, heat).items() if share < FULL}


def left_free(settings: Settings) -> dict[str, int]:
    """Bytes to leave free on each card that has a limit of its own for this."""
    own = device_limits.read(str(settings.get("compute.device_limits", "")))
    return {device: int(numbers["GB"] * _GB) for device, numbers in own.items() if "GB" in numbers}


def of_all(ceilings: Mapping[str, float], *, in_step: bool) -> tuple[str, float]:
    """The device that decides, and the ceiling of all together: of devices `in_step` the lowest, else the highest."""
    if not ceilings:
        return "", FULL
    device = (min if in_step else max)(ceilings, key=ceilings.__getitem__)
    return device, ceilings[device]


def room(settings: Settings, conditions: Conditions, devices: Sequence[str]) -> int | None:
    """By how many bytes the free memory of the fullest device exceeds what is to be left free; None if unknown."""
    reading = conditions[Condition.GPU_MEMORY]
    free = {device: value_of(reading, device) for device in devices}
    found = [bytes_ - limits_of(settings, device).leave_memory for device, bytes_ in free.items() if bytes_ is not None]
    return int(min(found)) if found else None
