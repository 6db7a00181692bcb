"""List of this computer's computing devices, each usable or with the reason why not.

A card that cannot be examined is listed with the error. torch is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skep.adapters.gpu import amd, cpu, nvidia
from skep.core.device import Device, DeviceKind
from skep.core.text import Text


class LocalDevices:
    """Implements ports.Devices. `root` is the folder that contains sys, proc and dev."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def list(self) -> Sequence[Device]:
        """NVIDIA, AMD and Apple GPUs, then the processor. Never raises; takes a fraction of a second."""
        return (
            *_examined(DeviceKind.NVIDIA, "NVIDIA graphics", lambda: nvidia.devices(self._root)),
            *_examined(DeviceKind.AMD, "AMD graphics", lambda: amd.devices(self._root)),
            *_examined(DeviceKind.APPLE, "Apple graphics", cpu.apple_devices),
            *_examined(DeviceKind.CPU, "Processor", lambda: cpu.devices(self._root)),
        )


def _examined(kind: DeviceKind, name: str, look: Callable[[], Sequence[Device]]) -> Sequence[Device]:
    try:
        return look()
    except Exception as error:  # noqa: BLE001  the port promises never to raise, whatever a driver's library does
        return (Device(kind, 0, name, unusable=Text("devices.could_not_examined", reason=str(error))),)
