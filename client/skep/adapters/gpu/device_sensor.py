"""The sensor of the training devices: use by other programs, free memory, temperature and power.

Of several, what counts is the use of the busiest, the least free memory, the highest temperature, and the power of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from skep import ports
from skep.adapters.gpu import cpu, pci
from skep.adapters.gpu.amd import AmdCard
from skep.adapters.gpu.nvidia import NvidiaCard
from skep.adapters.process.own_processes import OwnProcesses
from skep.adapters.sensors.source import Polled
from skep.core.device import ALL, Device, DeviceKind, chosen, first_chosen, names_of
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing
from skep.core.text import Text

_CARDS: Final = (DeviceKind.NVIDIA, DeviceKind.AMD)

_OF_SEVERAL: Final[Mapping[Condition, Callable[[Iterable[Any]], Any]]] = {
    Condition.GPU_USE: max,
    Condition.GPU_MEMORY: min,
    Condition.TEMPERATURE: max,
    Condition.POWER: sum,
}
HEAT_SECONDS: Final = 1.5
"""Interval of the processor's temperature: its sensors are slow to read, and it changes slowly."""
LIST_SECONDS: Final = 30.0
"""Between two lists of the devices, while the processor is read in place of a card that cannot be used."""


class DeviceSensor(Polled):
    """Implements ports.Sensor. `wanted` returns the setting compute.device, and is called at every reading."""

    conditions: Sequence[Condition] = pci.READINGS

    def __init__(
        self,
        wanted: Callable[[], str],
        devices: ports.Devices,
        ours: OwnProcesses,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._wanted, self._devices, self._ours, self._root, self._clock = wanted, devices, ours, root, clock
        self._chosen: tuple[str, list[Device], list[Callable[[], Seen]]] | None = None
        """The setting, the devices, and their readers; no reader raises."""
        self._list_at = float("inf")
        """When devices are to be listed again."""
        self._held = ExitStack()

    @property
    def name(self) -> str:
        return names_of([each.name for each in self._chosen[1]]) if self._chosen else "Device"

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: only a card's use and memory change so quickly that it must be polled."""
        return self._chosen is not None and self._chosen[1][0].kind not in _CARDS

    def read(self) -> Seen:
        wanted = self._wanted()
        # a card that was lost is still read, so that its recovery is noticed
        if self._chosen is None or self._chosen[0] != wanted or self._clock() >= self._list_at:
            self._choose(wanted)
        assert self._chosen is not None
        _, devices, readers = self._chosen
        seen = together([(each.choice, read()) for each, read in zip(devices, readers, strict=True)])
        if self.closed.is_set():
            self._let_go()
        return seen

    def _choose(self, wanted: str) -> None:
        listed = self._devices.list()
        devices = choose_all(listed, wanted)
        self._list_at = self._clock() + LIST_SECONDS if stands_in(devices, listed, wanted) else float("inf")
        before = self._chosen
        if before is None or before[0] != wanted or list(map(_same, before[1])) != list(map(_same, devices)):
            self._let_go()
            self._chosen = (wanted, devices, [self._reader(each) for each in devices])

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        if self.closed.is_set():
            self._let_go()

    def _let_go(self) -> None:
        self._held.close()
        self._chosen = None

    def _reader(self, device: Device) -> Callable[[], Seen]:
        match device.kind:
            case DeviceKind.NVIDIA:
                card = NvidiaCard(device.index, self._ours)
                self._held.callback(card.close)
                return card.read
            case DeviceKind.AMD:
                return AmdCard(device.index, self._ours, self._root).read
            case DeviceKind.APPLE:
                return lambda: dict.fromkeys(
                    pci.READINGS, missing(Text("device_sensor.macos_tells_administrator_only"))
                )
            case DeviceKind.CPU:
                return ProcessorReader().read


def choose(devices: Sequence[Device], wanted: str) -> Device:
    """The device that `wanted` names ("cpu", "cuda:0", "mps"; "" for the best), else the processor.

    The best is the usable card with the most memory, then Apple's GPU, as in the worker.
    """
    processor = next(device for device in devices if device.kind is DeviceKind.CPU)
    kind, _, index = first_chosen(wanted).partition(":")
    match kind:
        case "cuda":
            fitting = [each for each in devices if each.kind in _CARDS and each.index == int(index or 0)]
        case "mps":
            fitting = [each for each in devices if each.kind is DeviceKind.APPLE]
        case "cpu":
            fitting = []
        case _:
            graphics = [each for each in devices if each.kind is not DeviceKind.CPU]
            fitting = sorted(graphics, key=lambda each: (each.kind is DeviceKind.APPLE, -(each.memory_total or 0)))
    return next((device for device in fitting if device.unusable is None), processor)


def choose_all(devices: Sequence[Device], wanted: str) -> list[Device]:
    """The devices that `wanted` names, as `choose` for each; for "all", every usable card, the one of `choose` first."""
    first = choose(devices, wanted)
    if wanted == ALL:
        others = [each for each in devices if each.kind in _CARDS and each.unusable is None]
    else:
        others = [choose(devices, each) for each in chosen(wanted)]
    return list(dict.fromkeys([first, *others]))


def stands_in(devices: Sequence[Device], listed: Sequence[Device], wanted: str) -> bool:
    """Whether the processor is among `devices` only because a card that `wanted` names cannot be used, perhaps for now."""
    names = {each.partition(":")[0] for each in chosen(wanted)}
    if "cpu" in names or all(each.kind is not DeviceKind.CPU for each in devices):
        return False
    return not names <= {"", ALL} or any(each.unusable is not None for each in listed)


def _same(device: Device) -> tuple[DeviceKind, int, Text | None]:
    """What is the same in two lists of devices, unless the device has changed: their free memory differs."""
    return device.kind, device.index, device.unusable


def together(seen: Sequence[tuple[str, Seen]]) -> Seen:
    """One reading of each condition for all devices, with that of each; `seen` has each device's name and readings.

    A device that does not answer counts only if none does: one that is lost computes nothing.
    """
    return {
        condition: _joint(condition, [(name, each[condition]) for name, each in seen]) for condition in pci.READINGS
    }


def _joint(condition: Condition, readings: Sequence[tuple[str, Reading[float]]]) -> Reading[float]:
    values = [(name, each.value) for name, each in readings if each.value is not None]
    if not values:
        return readings[0][1]
    note = next(each.note for _, each in readings if each.value is not None)
    return answered(_OF_SEVERAL[condition](value for _, value in values), note, dict(values))


class ProcessorReader:
    """Reads the processor's temperature, for training on the processor; no card is accessed."""

    def __init__(
        self, temperature: Callable[[], float | None] = cpu.temperature, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._temperature, self._clock = temperature, clock
        self._degrees: float | None = None
        self._read_at = float("-inf")

    def read(self) -> Seen:
        now = self._clock()
        if now - self._read_at >= HEAT_SECONDS:
            self._degrees, self._read_at = self._temperature(), now
        heat = (
            missing(Text("device_sensor.computer_has_no_sensor_processor"))
            if self._degrees is None
            else answered(self._degrees, Text("battery.operating_system"))
        )
        here = missing(Text("device_sensor.training_runs_processor_here"))
        return {
            Condition.GPU_USE: here,
            Condition.GPU_MEMORY: here,
            Condition.TEMPERATURE: heat,
            Condition.POWER: missing(Text("device_sensor.processor_does_not_tell_power")),
        }
