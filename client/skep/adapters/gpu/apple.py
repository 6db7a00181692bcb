"""The graphics part of an Apple chip, which shares the computer's memory.

It must not promise readings: macOS gives temperature and power to the administrator only.
"""

from __future__ import annotations

import platform
import subprocess

import psutil

from skep.core.device import Device, DeviceKind


def devices(system: str | None = None, machine: str | None = None) -> list[Device]:
    """One device on a Mac with Apple's chip, none elsewhere. `system` and `machine` as `platform` names them."""
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
    """The processor's name as macOS tells it; None elsewhere."""
    try:
        told = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, timeout=2, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None
