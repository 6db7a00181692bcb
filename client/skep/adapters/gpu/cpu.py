"""The processor as a device, which is always usable for training, and the GPU of an Apple chip.

macOS reports temperature and power to administrators only.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import psutil

from skep.adapters.gpu import pci
from skep.core.device import Device, DeviceKind

_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal")
_UTILISATION_SECONDS = 0.1
"""Processor use is measured over this time; over shorter times it jumps between 0 and 1."""


class Reading(Protocol):
    """One temperature as psutil reports it, in degrees Celsius."""

    @property
    def current(self) -> float | None: ...


def devices(root: Path) -> list[Device]:
    """The processor, always exactly one device. Takes 0.1 s, to measure its use."""
    memory = psutil.virtual_memory()
    return [
        Device(
            DeviceKind.CPU,
            0,
            _name(root),
            memory_total=memory.total,
            memory_free=memory.available,
            temperature=temperature(),
            utilisation=psutil.cpu_percent(interval=_UTILISATION_SECONDS) / 100,
        )
    ]


def temperature() -> float | None:
    """The processor's, in degrees Celsius; None if there is no sensor."""
    # psutil leaves the function out on systems without sensors it can read, such as macOS
    read = getattr(psutil, "sensors_temperatures", dict)
    try:
        return hottest(read())
    except OSError:
        return None


def hottest(sensors: Mapping[str, Sequence[Reading]]) -> float | None:
    """The highest temperature of the sensors known to belong to processors; None when there is none."""
    degrees = [
        reading.current
        for name in _PROCESSOR_SENSORS
        for reading in sensors.get(name, ())
        if reading.current is not None and reading.current > 0
    ]
    return max(degrees, default=None)


def _name(root: Path) -> str:
    """The model name, which Linux knows for Intel and AMD; other processors are named by their architecture."""
    told = pci.field(root / "proc/cpuinfo", "model name")
    return told or (chip_name() if platform.system() == "Darwin" else None) or f"{platform.machine()} processor"


def apple_devices(system: str | None = None, machine: str | None = None) -> list[Device]:
    """The GPU of a Mac with Apple's chip, which shares the computer's memory; none on other computers.

    `system` and `machine` as `platform` names them.
    """
    if (system or platform.system(), machine or platform.machine()) != ("Darwin", "arm64"):
        return []
    memory = psutil.virtual_memory()
    return [
        Device(
            DeviceKind.APPLE,
            0,
            chip_name() or "Apple chip",
            memory_total=memory.total,
            memory_free=memory.available,
            driver=f"macOS {platform.mac_ver()[0]}".strip(),
        )
    ]


def chip_name() -> str | None:
    """The processor's name on macOS; None on other systems."""
    try:
        told = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, timeout=2, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None
