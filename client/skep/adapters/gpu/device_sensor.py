"""The device that trains, or would: use by others, free memory, heat and power, from whoever knows them for that device.

It must not train nor pick for the worker; it takes the device the settings name, else the one the worker would take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from skep import ports
from skep.adapters.gpu import cpu
from skep.adapters.gpu.amd import AmdCard
from skep.adapters.gpu.nvidia_readings import NvidiaCard
from skep.adapters.process.own_processes import OwnProcesses
from skep.adapters.sensors.source import Polled
from skep.core.device import Device, DeviceKind
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing
from skep.core.text import Text

_CARDS: Final = (DeviceKind.NVIDIA, DeviceKind.AMD)

HEAT_SECONDS: Final = 1.5
"""The processor's sensors take long to read, and heat changes slowly."""


class Card(Protocol):
    """One device; `read` and `close` are called by one thread, and neither raises."""

    def read(self) -> Seen: ...

    def close(self) -> None: ...


class DeviceSensor(Polled):
    """Implements ports.Sensor. `wanted` gives the setting compute.device, and may be asked at every reading."""

    conditions: Sequence[Condition] = (
        Condition.GPU_USE,
        Condition.GPU_MEMORY,
        Condition.TEMPERATURE,
        Condition.POWER,
    )

    def __init__(
        self, wanted: Callable[[], str], devices: ports.Devices, ours: OwnProcesses, root: Path = Path("/")
    ) -> None:
        super().__init__()
        self._wanted, self._devices, self._ours, self._root = wanted, devices, ours, root
        self._chosen: tuple[str, Device, Card] | None = None

    @property
    def name(self) -> str:
        return self._chosen[1].name if self._chosen else "Device"

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: nothing but a card is used by others, or short of memory, from one moment to the next."""
        return self._chosen is not None and self._chosen[1].kind not in _CARDS

    def read(self) -> Seen:
        wanted = self._wanted()
        # a card that was lost stays the one that is read, so that it is heard when it answers again
        if self._chosen is None or self._chosen[0] != wanted:
            self._let_go()
            device = choose(self._devices.list(), wanted)
            self._chosen = (wanted, device, self._open(device))
        seen = self._chosen[2].read()
        if self.closed.is_set():
            self._let_go()
        return seen

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        if self.closed.is_set():
            self._let_go()

    def _let_go(self) -> None:
        if self._chosen is not None:
            self._chosen[2].close()
            self._chosen = None

    def _open(self, device: Device) -> Card:
        match device.kind:
            case DeviceKind.NVIDIA:
                return NvidiaCard(device.index, self._ours)
            case DeviceKind.AMD:
                return AmdCard(device.index, self._ours, self._root)
            case DeviceKind.APPLE:
                return _Apple()
            case DeviceKind.CPU:
                return _Processor()


def choose(devices: Sequence[Device], wanted: str) -> Device:
    """The device that `wanted` names ("cpu", "cuda:0", "mps"; "" for the best), else the processor.

    The best is the usable card with the most memory, then Apple's graphics, as for the worker.
    """
    processor = next(device for device in devices if device.kind is DeviceKind.CPU)
    kind, _, index = wanted.partition(":")
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


class _Processor:
    """Training on the processor: no card is touched, and its own heat is what counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heat: tuple[float, Reading[float]] | None = None

    def read(self) -> Seen:
        if self._heat is None or self._clock() - self._heat[0] >= HEAT_SECONDS:
            self._heat = (self._clock(), _heat(cpu.temperature()))
        here = Text("device_sensor.training_runs_processor_here")
        return {
            Condition.GPU_USE: missing(here),
            Condition.GPU_MEMORY: missing(here),
            Condition.TEMPERATURE: self._heat[1],
            Condition.POWER: missing(Text("device_sensor.processor_does_not_tell_power")),
        }

    def close(self) -> None:
        """Nothing is held open."""


def _heat(degrees: float | None) -> Reading[float]:
    if degrees is None:
        return missing(Text("device_sensor.computer_has_no_sensor_processor"))
    return answered(degrees, Text("battery.operating_system"))


class _Apple:
    """Apple's graphics tell the administrator only."""

    def read(self) -> Seen:
        note = Text("device_sensor.macos_tells_administrator_only")
        return {condition: missing(note) for condition in DeviceSensor.conditions}

    def close(self) -> None:
        """Nothing is held open."""
