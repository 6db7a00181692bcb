"""Descriptions of the compute devices of this computer, as the engine knows them without torch. Data only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.text import NOTHING, Text


class DeviceKind(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    APPLE = "apple"
    CPU = "cpu"


ALL: Final = "all"
"""In the setting compute.device: every card."""
MOST_ON_PROCESSOR: Final = 16
_CARD: Final = r"cuda:(0|[1-9]\d?)"
_CARDS: Final = rf"(?!.*\b(?P<card>cuda:\d+)\b.*\b(?P=card)\b){_CARD}(,{_CARD}){{1,15}}"
CHOICE: Final = rf"{ALL}|cpu(\*([1-9]|1[0-{MOST_ON_PROCESSOR - 10}]))?|mps|cuda|{_CARD}|{_CARDS}"
"""The setting compute.device, unless empty: one device, all cards, some of them, or the processor several times."""


def chosen(wanted: str) -> tuple[str, ...]:
    """The devices that the setting names, one for each rank; ("",) for the best and ("all",) for all cards."""
    kind, _, times = wanted.partition("*")
    return (kind,) * int(times) if times else tuple(wanted.split(","))


def first_chosen(wanted: str) -> str:
    """The one of them by which the computer is judged: the first, or the best of all."""
    first = chosen(wanted)[0]
    return "" if first == ALL else first


def names_of(devices: Sequence[str]) -> str:
    """Each name once, with how many there are of it: "2 x RTX 4090, RTX 3090", with a sign for x."""
    counts = Counter(devices)
    return ", ".join(
        name if count == 1 else f"{count} \N{MULTIPLICATION SIGN} {name}" for name, count in counts.items()
    )


def labelled(name: str, device: str) -> str:
    """A card's name, if known, with the one that torch has for it, which tells two of a model apart: "RTX 4090 (cuda:1)"."""
    return f"{name} ({device})" if name and ":" in device else name or device


def kind_of(device: str) -> str:
    """As torch names it: "cuda" of "cuda:1"."""
    return device.partition(":")[0]


def numbered(devices: Sequence[str]) -> tuple[str, ...]:
    """A name of its own for each rank on `devices`: those that share the processor are "cpu:0" and "cpu:1"."""
    return tuple(
        f"{device}:{devices[:place].count(device)}" if devices.count(device) > 1 else device
        for place, device in enumerate(devices)
    )


@dataclass(frozen=True)
class ComputingDevice:
    """A device that computes in a worker. `id` is its Device.choice, or as `numbered` names several ranks of one.

    `busy` is how much of the group's time of computing it computed of late, 0..1.
    """

    id: str
    name: str
    busy: float = 1.0


@dataclass(frozen=True)
class PowerCap:
    """The power limit of a card and the range in which it can be set, in watts; None where the card reports none.

    `refused` is a sentence that says why skep cannot change the limit; empty when it can.
    """

    watts: float | None = None
    lowest: float | None = None
    highest: float | None = None
    refused: Text = NOTHING


def refusals(caps: Iterable[PowerCap]) -> list[Text]:
    """Why power limits cannot be changed, each reason once."""
    found = list[Text]()
    for cap in caps:
        if cap.refused and cap.refused not in found:
            found.append(cap.refused)
    return found


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
