"""What was found that can compute, or why it cannot, in words; and the three presets of limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skep.cli import words
from skep.core.manifest_fields import plain
from skep.core.model import Device, DeviceKind
from skep.core.settings import SETTINGS, Value
from skep_gui.present.speaker import Speaker


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
    values: dict[str, Value]


class Devices(Speaker):
    def rows(self, devices: Sequence[Device]) -> list[DeviceRow]:
        return [DeviceRow(plain(each.name), self._detail(each), each.unusable is None) for each in devices]

    def _detail(self, device: Device) -> str:
        if device.unusable is not None:
            return plain(device.unusable)
        if device.kind is DeviceKind.CPU:
            return self.tr("Works for small projects.")
        if device.memory_total is None:
            return self.tr("Ready to train.")
        return self.tr("Ready to train, with %1 of memory.").replace("%1", words.size(device.memory_total))

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
            _preset(
                self.tr("Gentle"),
                self.tr("Half of the time while you are away. Quiet and cool."),
                {"compute.share_away": 0.5, "compute.share_using": 0.0},
            ),
            _preset(
                self.tr("Balanced"),
                self.tr("Three quarters of the time while you are away."),
                {"compute.share_away": 0.75, "compute.share_using": 0.2},
            ),
            _preset(
                self.tr("Generous"),
                self.tr("All of the time while you are away."),
                {"compute.share_away": 1.0, "compute.share_using": 0.4},
            ),
        ]


def _preset(name: str, meaning: str, values: dict[str, Value]) -> Preset:
    return Preset(name, meaning, {key: value for key, value in values.items() if SETTINGS[key].effective})
