"""Descriptions of the compute devices of this computer, as the engine knows them without torch. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skep.core.text import NOTHING, Text


class DeviceKind(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    APPLE = "apple"
    CPU = "cpu"


@dataclass(frozen=True)
class PowerCap:
    """The power limit of a card and the range in which it can be set, in watts; None where the card reports none.

    `refused` is a sentence that says why skep cannot change the limit; empty when it can.
    """

    watts: float | None = None
    lowest: float | None = None
    highest: float | None = None
    refused: Text = NOTHING


@dataclass(frozen=True)
class Device:
    """One compute device, as the engine knows it without torch.

    Bytes for memory, degrees Celsius, watts, utilisation 0..1; None where there is no source.
    `unusable` is the reason why training cannot use the device; None when it can. `bf16` tells whether it computes
    in bfloat16. `architecture` is the kind of card that code is built for: a compute capability such as "8.6" for
    NVIDIA, a name such as "gfx1100" for AMD.
    """

    kind: DeviceKind
    index: int
    name: str
    memory_total: int | None = None
    memory_free: int | None = None
    driver: str | None = None
    temperature: float | None = None
    power: float | None = None
    utilisation: float | None = None
    unusable: Text | None = None
    bf16: bool | None = None
    architecture: str | None = None

    @property
    def choice(self) -> str:
        """The device's name in the setting compute.device. It is torch's name: AMD GPUs are cuda devices too."""
        match self.kind:
            case DeviceKind.CPU:
                return "cpu"
            case DeviceKind.APPLE:
                return "mps"
            case DeviceKind.NVIDIA | DeviceKind.AMD:
                return f"cuda:{self.index}"
