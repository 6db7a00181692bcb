"""What was found that can compute, or why it cannot, in words; and the three presets of limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skep.core.device import Device, DeviceKind
from skep.core.plain_text import plain
from skep.core.settings.setting import Value
from skep_gui.words.settings_form import Choices
from skep_gui.words.speaker import Speaker


@dataclass(frozen=True)
class DeviceRow:
    name: str
    detail: str
    usable: bool


@dataclass(frozen=True)
class Preset:
    """Suggested limits; only settings that this version obeys are among `values`."""

    name: str
    meaning: str
    using: str
    away: str
    values: dict[str, Value]


class Devices(Speaker):
    def rows(self, devices: Sequence[Device]) -> list[DeviceRow]:
        return [DeviceRow(plain(each.name), self._detail(each), each.unusable is None) for each in devices]

    def _detail(self, device: Device) -> str:
        if device.unusable is not None:
            return plain(self.said(device.unusable))
        if device.kind is DeviceKind.CPU:
            return self.tr("Works for small projects.")
        if device.memory_total is None:
            return self.tr("Ready to train.")
        return self.tr("Ready to train, with %1 of memory.").replace("%1", self.numbers.size(device.memory_total))

    def offered(self, devices: Sequence[Device]) -> Choices:
        """Those that can be used, as the setting calls them and by their names; several of one name by their numbers."""
        usable = [each for each in devices if each.unusable is None]
        names = [plain(each.name) for each in usable]
        return tuple(
            (each.choice, f"{name} ({each.choice})" if names.count(name) > 1 else name)
            for each, name in zip(usable, names, strict=True)
        )

    def sentence(self, devices: Sequence[Device]) -> str:
        usable = [each for each in devices if each.unusable is None]
        graphics = [each for each in usable if each.kind is not DeviceKind.CPU]
        if graphics:
            return self.tr("skep found %1.").replace("%1", plain(graphics[0].name))
        if usable:
            return self.tr("skep found no GPU it can use, so the processor will train. That suits small projects.")
        return self.tr("skep found nothing it can train on.")

    def presets(self) -> list[Preset]:
        return [
            self._preset(self.tr("Gentle"), self.tr("Quiet and cool, and never in your way."), 0.0, 0.5),
            self._preset(self.tr("Balanced"), self.tr("A little while you work, most of the time else."), 0.2, 0.75),
            self._preset(self.tr("Generous"), self.tr("A good part while you work, all of the time else."), 0.4, 1.0),
        ]

    def _preset(self, name: str, meaning: str, using: float, away: float) -> Preset:
        shown = self.numbers.percent(using) if using else self.tr("pauses")
        values: dict[str, Value] = {"compute.share_away": away, "compute.share_using": using}
        return Preset(
            name,
            meaning,
            self.tr("While I use this computer: %1").replace("%1", shown),
            self.tr("While I'm away: %1").replace("%1", self.numbers.percent(away)),
            values,
        )
