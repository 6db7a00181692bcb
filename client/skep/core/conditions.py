"""What the machine is doing, as readings that may also be missing or silent. Data only; what follows from it is `policy`.

A source that does not exist here is *missing*: known, and named on screen. One that exists and does not answer is *silent*,
and whoever decides must take it for the worse. Nothing is ever guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Source(StrEnum):
    ANSWERS = "answers"
    MISSING = "missing"
    SILENT = "silent"


@dataclass(frozen=True)
class Reading(Generic[T_co]):
    """`value` is None unless the source answers; `note` says in plain words why there is none, or which source it is."""

    value: T_co | None = None
    source: Source = Source.MISSING
    note: str = ""


def answered(value: T, note: str = "") -> Reading[T]:
    """A reading that its source gave. `note` names the source."""
    return Reading(value, Source.ANSWERS, note)


def missing(note: str) -> Reading[Any]:
    """There is no such source on this computer; `note` says so: "This computer has no battery."."""
    return Reading(None, Source.MISSING, note)


def silent(note: str) -> Reading[Any]:
    """The source exists and does not answer; `note` says which: "The screen does not say when it was last used."."""
    return Reading(None, Source.SILENT, note)


class Condition(StrEnum):
    """The names of the readings, which are the fields of Conditions."""

    INPUT = "input"
    LOCKED = "locked"
    FULL_SCREEN = "full_screen"
    INHIBITED = "inhibited"
    GPU_USE = "gpu_use"
    PROCESSOR_USE = "processor_use"
    GPU_MEMORY = "gpu_memory"
    MEMORY = "memory"
    TEMPERATURE = "temperature"
    POWER = "power"
    BATTERY = "battery"
    METERED = "metered"


Seen = Mapping[Condition, Reading[Any]]
"""What one look at one source told."""


@dataclass(frozen=True)
class Conditions:
    """All readings as last seen; what belongs to a device belongs to the one that trains, or would."""

    graphical: bool = False
    """Whether anybody can sit at a screen of this computer; without, nobody does, and that is known."""
    input: Reading[float] = field(default_factory=Reading)
    """Seconds since the last key, pointer or touch, when it was read."""
    locked: Reading[bool] = field(default_factory=Reading)
    full_screen: Reading[bool] = field(default_factory=Reading)
    """Whether the foreground window fills a screen and is not ours."""
    inhibited: Reading[bool] = field(default_factory=Reading)
    """Whether another program keeps the screen from going dark, as a call or a film does."""
    gpu_use: Reading[float] = field(default_factory=Reading)
    """What other programs use of the GPU, 0..1."""
    processor_use: Reading[float] = field(default_factory=Reading)
    """What other programs use of all processor cores together, 0..1."""
    gpu_memory: Reading[int] = field(default_factory=Reading)
    """Free on the GPU, in bytes."""
    memory: Reading[int] = field(default_factory=Reading)
    """Available in RAM, in bytes."""
    temperature: Reading[float] = field(default_factory=Reading)
    """Of the device, in degrees Celsius."""
    power: Reading[float] = field(default_factory=Reading)
    """What the device draws, in watts."""
    battery: Reading[bool] = field(default_factory=Reading)
    """Whether the computer runs on its battery."""
    metered: Reading[bool] = field(default_factory=Reading)

    def with_seen(self, seen: Seen) -> Conditions:
        """These conditions with newer readings in place of the old ones."""
        readings: dict[str, Any] = {condition.value: reading for condition, reading in seen.items()}
        return replace(self, **readings)
