"""AMD cards, as the amdgpu driver's files in sysfs report them; amdsmi adds names where it is installed.

It must not need amdsmi, and must not import torch.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from skep.adapters.gpu import pci
from skep.core.model import Device, DeviceKind

_BY_DRIVER = {
    None: "No driver is loaded for it.",
    "radeon": "It runs on the old radeon driver, which cannot train.",
    "vfio-pci": "It is set aside for a virtual machine.",
}


def devices(root: Path) -> list[Device]:
    """Every AMD card on the PCI bus, by address."""
    found = pci.cards(root, pci.AMD)
    names = _names() if found else {}
    return [read(root, index, card, names.get(card.address)) for index, card in enumerate(found)]


def read(root: Path, index: int, card: pci.Card, name: str | None = None) -> Device:
    """The card as it is now; `name` is its market name, where it is known."""
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


def _why_unusable(root: Path, card: pci.Card) -> str | None:
    if card.driver in _BY_DRIVER:
        return _BY_DRIVER[card.driver]
    compute = root / "dev/kfd"
    if not compute.exists():
        return "Its driver offers no computing: /dev/kfd is missing. Install AMD's ROCm driver."
    if not os.access(compute, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return "You have no permission to use it: /dev/kfd is closed to you. Join the group render and log in again."
    return None


def _names() -> dict[str, str]:
    """Market names by PCI address; empty where amdsmi is not installed or does not work."""
    try:
        import amdsmi  # noqa: PLC0415  optional, and it looks for its library while it is imported
    except (ImportError, KeyError, OSError):
        return {}
    names: dict[str, str] = {}
    # amdsmi raises errors of its own and, when its library does not match, whatever ctypes meets
    with suppress(Exception):
        amdsmi.amdsmi_init()
        try:
            names.update(_ask_names(amdsmi))
        finally:
            amdsmi.amdsmi_shut_down()
    return names


def _ask_names(amdsmi: Any) -> dict[str, str]:
    return {
        str(amdsmi.amdsmi_get_gpu_device_bdf(handle)).lower(): str(
            amdsmi.amdsmi_get_gpu_asic_info(handle)["market_name"]
        )
        for handle in amdsmi.amdsmi_get_processor_handles()
    }
