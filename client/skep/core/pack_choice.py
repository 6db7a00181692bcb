"""Which compute pack of a list suits a computer, by its cards and their drivers. Pure.

Packs for a graphics card come before those for the processor, and of several CUDA lines the newest that the driver can
run. Whether a pack really works is found out by a trial; a pack that failed it is passed over like one that cannot suit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skep.core.device import Device, DeviceKind
from skep.core.packs import Pack, PackKind
from skep.core.text import Text

DEVICES: Final = {
    PackKind.CUDA: DeviceKind.NVIDIA,
    PackKind.ROCM: DeviceKind.AMD,
    PackKind.MPS: DeviceKind.APPLE,
    PackKind.CPU: DeviceKind.CPU,
}
"""The devices that a kind of pack computes on; the kinds are in the order in which they are preferred."""
_PREFERRED: Final = tuple(DEVICES)
_CARDS: Final = {PackKind.CUDA: "NVIDIA", PackKind.ROCM: "AMD", PackKind.MPS: "Apple"}
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")
_CAPABILITY: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class PassedOver:
    """A pack that would have been preferred, and a sentence that says why it is not taken."""

    pack: Pack
    why: Text


@dataclass(frozen=True)
class Choice:
    """The pack to use and the device that it computes on, both None where no pack suits; `why` is a sentence."""

    pack: Pack | None
    device: Device | None
    why: Text
    passed_over: tuple[PassedOver, ...] = ()


def choose(devices: Sequence[Device], packs: Sequence[Pack], failed: Mapping[str, Text] | None = None) -> Choice:
    """The best pack for the devices, which are in the order of preference.

    `failed` has the reason why a pack does not work here, by the pack's digest.
    """
    passed_over: list[PassedOver] = []
    for pack in sorted(packs, key=_rank):
        found = (failed or {}).get(pack.digest) or _device(devices, pack)
        if isinstance(found, Device):
            return Choice(pack, found, _suits(pack, found), tuple(passed_over))
        passed_over.append(PassedOver(pack, found))
    return Choice(None, None, Text("packs.none_suits"), tuple(passed_over))


def stands_in(used: Pack | None, chosen: Pack, passed_over: Sequence[PassedOver]) -> bool:
    """Whether `chosen` is of another kind than the pack that was used only because those of that kind were passed over."""
    return used is not None and used.kind is not chosen.kind and used.kind in {each.pack.kind for each in passed_over}


def driver_numbers(driver: str | None) -> tuple[int, ...]:
    """The numbers of a driver's version, such as (580, 65, 6) for "580.65.06" and (14, 5) for "macOS 14.5".

    Empty if it has none.
    """
    found = _NUMBERS.search(driver or "")
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _rank(pack: Pack) -> tuple[int, tuple[int, ...], str]:
    return _PREFERRED.index(pack.kind), tuple(-number for number in pack.driver), pack.name


def _device(devices: Sequence[Device], pack: Pack) -> Device | Text:
    """The first device that can run the pack; a sentence about the first of its kind if none can."""
    ours = [each for each in devices if each.kind is DEVICES[pack.kind]]
    if not ours:
        return Text("packs.no_such_card", kind=_CARDS.get(pack.kind, "CPU"))
    lacking = [_lacking(each, pack) for each in ours]
    return next((device for device, why in zip(ours, lacking, strict=True) if why is None), lacking[0] or ours[0])


def _lacking(device: Device, pack: Pack) -> Text | None:
    """Why the pack cannot run on the device, None if it can."""
    if device.unusable is not None:
        return Text("packs.card_unusable", name=device.name, reason=device.unusable)
    least = _without_zeros(pack.driver)
    has = driver_numbers(device.driver)
    needed = ".".join(str(number) for number in pack.driver)
    if least and not has:
        return Text("packs.driver_not_told", name=device.name, needed=needed)
    if has < least:
        return Text("packs.driver_too_old", name=device.name, driver=str(device.driver), needed=needed)
    if pack.cards and device.architecture is None:
        return Text("packs.card_not_told", name=device.name)
    if pack.cards and not any(_covers(card, str(device.architecture)) for card in pack.cards):
        return Text("packs.card_without_code", name=device.name, architecture=str(device.architecture))
    return None


def _without_zeros(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """So that (580, 0) is not newer than (580,)."""
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def _covers(code: str, card: str) -> bool:
    """Whether code for one kind of card runs on another.

    CUDA's binary code runs on cards of the same major compute capability with the same or a higher minor one (CUDA C++
    Programming Guide, "Binary Compatibility"); ROCm's on its own kind of card only.
    """
    built, has = _CAPABILITY.fullmatch(code), _CAPABILITY.fullmatch(card)
    if built is None or has is None:
        return code == card
    return built[1] == has[1] and int(built[2]) <= int(has[2])


def _suits(pack: Pack, device: Device) -> Text:
    match pack.kind:
        case PackKind.CUDA:
            return Text("packs.suits_driver", pack=pack.name, name=device.name, driver=str(device.driver))
        case PackKind.ROCM | PackKind.MPS:
            return Text("packs.suits_card", pack=pack.name, name=device.name)
        case PackKind.CPU:
            return Text("packs.suits_processor", pack=pack.name)
