"""AMD cards and their readings, from the amdgpu driver's files in sysfs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from skep.adapters.gpu import pci
from skep.adapters.process.own_processes import OwnProcesses
from skep.core.device import Device, DeviceKind
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing, silent
from skep.core.text import Text

_BY_DRIVER = {
    None: Text("amd.no_driver_loaded"),
    "radeon": Text("amd.runs_old_radeon_driver_cannot"),
    "vfio-pci": Text("amd.set_aside_virtual_machine"),
}


def devices(root: Path) -> list[Device]:
    """Every AMD card on the PCI bus, by address."""
    found = pci.cards(root, pci.AMD)
    names = _names() if found else {}
    return [read(root, index, card, names.get(card.address)) for index, card in enumerate(found)]


def read(root: Path, index: int, card: pci.Card, name: str | None = None) -> Device:
    """The card with its present readings; `name` is its market name, if known."""
    total = pci.number(card.folder / "mem_info_vram_total")
    used = pci.number(card.folder / "mem_info_vram_used")
    busy = pci.number(card.folder / "gpu_busy_percent")
    millidegrees = _sensor(card, "temp1_input")
    microwatts = _sensor(card, "power1_average") or _sensor(card, "power1_input")
    return Device(
        DeviceKind.AMD,
        index,
        name or pci.text(card.folder / "product_name") or f"AMD graphics card at {card.address}",
        memory_total=total,
        memory_free=None if total is None or used is None else max(0, total - used),
        driver=_driver(root, card),
        temperature=None if millidegrees is None else millidegrees / 1000,
        power=None if microwatts is None else microwatts / 1_000_000,
        utilisation=None if busy is None else busy / 100,
        unusable=_why_unusable(root, card),
        architecture=_architecture(root, card),
    )


def _sensor(card: pci.Card, name: str) -> int | None:
    for path in sorted(card.folder.glob(f"hwmon/hwmon*/{name}")):
        if (value := pci.number(path)) is not None:
            return value
    return None


def _driver(root: Path, card: pci.Card) -> str | None:
    if card.driver is None:
        return None
    version = pci.text(root / "sys/module" / card.driver / "version")
    return f"{card.driver} {version}" if version else card.driver


def _why_unusable(root: Path, card: pci.Card) -> Text | None:
    if card.driver in _BY_DRIVER:
        return _BY_DRIVER[card.driver]
    compute = root / "dev/kfd"
    if not compute.exists():
        return Text("amd.driver_offers_no_computing_dev")
    if not os.access(compute, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return Text("amd.you_have_no_permission_use")
    return None


def _architecture(root: Path, card: pci.Card) -> str | None:
    """The card's name in compilers, such as gfx1100, from the topology that the kernel tells to ROCm.

    A node has the card's bus, device and function in `location_id` and its version in `gfx_target_version`: two decimal
    digits each for minor and stepping, 90010 for gfx90a (drivers/gpu/drm/amd/amdkfd/kfd_topology.c, kfd_device.c).
    """
    domain, bus, rest = card.address.split(":")
    device, _, function = rest.partition(".")
    location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function, 16)
    for node in sorted((root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
        told = dict(line.split(maxsplit=1) for line in (pci.text(node) or "").splitlines() if " " in line.strip())
        version = told.get("gfx_target_version", "0")
        here = (told.get("location_id"), told.get("domain", "0")) == (str(location), str(int(domain, 16)))
        if here and version.isdecimal() and int(version):
            return f"gfx{int(version) // 10000}{int(version) // 100 % 100:x}{int(version) % 100:x}"
    return None


def _names() -> dict[str, str]:
    """Market names by PCI address; empty where amdsmi is not installed or does not work."""
    try:
        import amdsmi  # noqa: PLC0415  optional, and it looks for its library while it is imported
    except (ImportError, KeyError, OSError):
        return {}
    names: dict[str, str] = {}
    # amdsmi raises its own errors and, when its library does not match, various errors of ctypes
    with suppress(Exception):
        amdsmi.amdsmi_init()
        try:
            for card in amdsmi.amdsmi_get_processor_handles():
                address = str(amdsmi.amdsmi_get_gpu_device_bdf(card)).lower()
                names[address] = str(amdsmi.amdsmi_get_gpu_asic_info(card)["market_name"])
        finally:
            amdsmi.amdsmi_shut_down()
    return names


T = TypeVar("T")


class AmdCard:
    """The AMD card at `index` in bus order; `root` is the folder that contains sys and dev."""

    def __init__(self, index: int, ours: OwnProcesses, root: Path = Path("/")) -> None:
        self._index, self._ours, self._root = index, ours, root
        self._place: pci.Card | None = None

    def read(self) -> Seen:
        place = self._find()
        if place is None:
            return dict.fromkeys(pci.READINGS, silent(Text("amd.graphics_card_has_stopped_answering")))
        card = read(self._root, self._index, place)
        return {
            Condition.GPU_USE: self._use(card),
            Condition.GPU_MEMORY: _reading(card.memory_free, Text("amd.free_memory")),
            Condition.TEMPERATURE: _reading(card.temperature, Text("amd.temperature")),
            Condition.POWER: _reading(card.power, Text("amd.power")),
        }

    def _find(self) -> pci.Card | None:
        """The card, cached because the search is slow; None while it is not on the bus."""
        if self._place is None:
            found = pci.cards(self._root, pci.AMD)
            self._place = found[self._index] if self._index < len(found) else None
        return self._place if self._place and self._place.folder.exists() else None

    def _use(self, card: Device) -> Reading[float]:
        if self._computes_here():
            return missing(Text("amd.driver_tells_card_use_only"))
        return _reading(card.utilisation, Text("amd.use"))

    def _computes_here(self) -> bool:
        # the kernel lists the processes with /dev/kfd open, through which PyTorch uses an AMD card
        listed = self._root / "sys/class/kfd/kfd/proc"
        return any((listed / str(pid)).exists() for pid in self._ours.look())


def _reading(value: T | None, what: Text) -> Reading[T]:
    if value is None:
        return missing(Text("amd.graphics_card_does_not_tell", what=what))
    return answered(value, Text("amd.amd_driver"))
