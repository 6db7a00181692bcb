"""The graphics cards on the PCI bus and their kernel drivers, from sysfs.

Whether a card is usable is determined in the module of its vendor.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skep.core.policy.conditions import Condition

READINGS: Final = (Condition.GPU_USE, Condition.GPU_MEMORY, Condition.TEMPERATURE, Condition.POWER)
"""The conditions that a graphics card may report."""

NVIDIA = "0x10de"
AMD = "0x1002"

_DISPLAY = "0x03"
"""First byte of the PCI class of every display controller: VGA, 3D, other."""


@dataclass(frozen=True)
class Card:
    """One graphics card; `folder` is its directory in sysfs, with the readings its driver offers."""

    folder: Path

    @property
    def address(self) -> str:
        """Domain, bus, device and function, such as 0000:01:00.0."""
        return self.folder.name.lower()

    @property
    def driver(self) -> str | None:
        """Name of the card's kernel driver; None when it has none."""
        try:
            return (self.folder / "driver").readlink().name
        except OSError:
            return None


def cards(root: Path, vendor: str) -> list[Card]:
    """The cards of one vendor under `root`, by address; none without a PCI bus."""
    try:
        folders = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return []
    return [Card(folder) for folder in folders if _is_card(folder, vendor)]


def text(path: Path) -> str | None:
    """The content of a short text file, stripped; None if it is missing, unreadable or empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def number(path: Path) -> int | None:
    """The integer in a file; None if there is none."""
    try:
        return int(text(path) or "")
    except ValueError:
        return None


def field(path: Path, key: str) -> str | None:
    """The first value of `key` in a file of lines such as "key : value"; None if there is none."""
    for line in (text(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key and value.strip():
            return value.strip()
    return None


def _is_card(folder: Path, vendor: str) -> bool:
    return text(folder / "vendor") == vendor and (text(folder / "class") or "").startswith(_DISPLAY)
