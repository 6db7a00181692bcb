"""What an AMD card does now, as the amdgpu driver's files in sysfs tell it: use, free memory, heat, power.

The driver tells the use only of the whole card, so it is that of others only while nothing of ours computes there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

from skep.adapters.gpu import amd, pci
from skep.adapters.machine.own_processes import OwnProcesses
from skep.core.conditions import Condition, Reading, Seen, answered, missing, silent
from skep.core.model import Device

_GONE: Final = "The graphics card has stopped answering. Restart the computer."

T = TypeVar("T")


class AmdCard:
    """The AMD card that stands at `index` on the bus, under `root` where sys and dev lie."""

    def __init__(self, index: int, ours: OwnProcesses, root: Path = Path("/")) -> None:
        self._index, self._ours, self._root = index, ours, root
        self._place: pci.Card | None = None

    def read(self) -> Seen:
        place = self._find()
        if place is None:
            conditions = (Condition.GPU_USE, Condition.GPU_MEMORY, Condition.TEMPERATURE, Condition.POWER)
            return {condition: silent(_GONE) for condition in conditions}
        card = amd.read(self._root, self._index, place)
        return {
            Condition.GPU_USE: self._use(card),
            Condition.GPU_MEMORY: _reading(card.memory_free, "its free memory"),
            Condition.TEMPERATURE: _reading(card.temperature, "its temperature"),
            Condition.POWER: _reading(card.power, "its power"),
        }

    def close(self) -> None:
        """Nothing is held open."""

    def _find(self) -> pci.Card | None:
        """Looked for on the bus once, which takes long; None while it is not there."""
        if self._place is None:
            found = pci.cards(self._root, pci.AMD)
            self._place = found[self._index] if self._index < len(found) else None
        return self._place if self._place and self._place.folder.exists() else None

    def _use(self, card: Device) -> Reading[float]:
        if self._computes_here():
            return missing("The driver tells this card's use only as a whole, with skep's own in it.")
        return _reading(card.utilisation, "its use")

    def _computes_here(self) -> bool:
        # the kernel lists whoever holds /dev/kfd, which is how PyTorch reaches an AMD card
        listed = self._root / "sys/class/kfd/kfd/proc"
        return any((listed / str(pid)).exists() for pid in self._ours.look())


def _reading(value: T | None, what: str) -> Reading[T]:
    if value is None:
        return missing(f"The graphics card does not tell {what}.")
    return answered(value, "AMD's driver")
