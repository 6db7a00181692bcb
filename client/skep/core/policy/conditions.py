"""What the machine is doing, as readings that may be missing or silent, and which readings can be true. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any, Final, Generic, Self, TypeVar

from skep.core.text import NOTHING, Text

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
    note: Text = NOTHING


def answered(value: T, note: Text = NOTHING) -> Reading[T]:
    """A reading that its source gave. `note` names the source."""
    return Reading(value, Source.ANSWERS, note)


def missing(note: Text) -> Reading[Any]:
    """There is no such source on this computer; `note` says so: "This computer has no battery."."""
    return Reading(None, Source.MISSING, note)


def silent(note: Text) -> Reading[Any]:
    """The source exists and does not answer; `note` says which: "The screen does not say when it was last used."."""
    return Reading(None, Source.SILENT, note)


BUSY_GPU: Final = 0.15
"""What other programs may use of the GPU before it counts as busy with them."""
BUSY_PROCESSOR: Final = 0.60
"""What other programs may use of all cores together before they count as needing the processor."""


class Unit(Enum):
    SECONDS_AGO = "seconds since it happened"
    SHARE = "0..1"
    BYTES = "bytes"
    CELSIUS = "degrees Celsius"
    WATTS = "watts"


@dataclass(frozen=True, kw_only=True)
class ConditionSpec:
    """What belongs to one reading.

    `title` names it in lists, `name` at the end of a sentence. It is read every `period` seconds where its source has to
    be asked, every `told_period` seconds where the source also tells by itself. `imagined` are the words of `explain --if`
    with the values that they stand for. `sensor` is the module of `skep.adapters.sensors` whose SENSOR reads it, where
    one sensor suits every system.
    """

    title: Text
    name: Text
    period: float
    told_period: float
    imagined: Mapping[str, float | bool] = field(default_factory=dict)
    sensor: str = ""


_YES: Final = Text("condition.yes")
_NO: Final = Text("condition.no")


@dataclass(frozen=True, kw_only=True)
class YesNo(ConditionSpec):
    """`yes` and `no` are its values in words."""

    yes: Text = _YES
    no: Text = _NO


@dataclass(frozen=True, kw_only=True)
class Quantity(ConditionSpec):
    """A number in `unit`. Outside `bounds` it cannot be true.

    It is news when it differs by `step` from what was told, or crosses `limit`.
    """

    unit: Unit
    bounds: tuple[float, float]
    step: float
    limit: float | None = None


class Condition(StrEnum):
    """The readings; what belongs to a device belongs to the one that trains, or would."""

    spec: YesNo | Quantity

    def __new__(cls, name: str, spec: YesNo | Quantity) -> Self:
        made = str.__new__(cls, name)
        made._value_, made.spec = name, spec
        return made

    INPUT = (
        "input",
        Quantity(
            title=Text("condition.title_last_input"),
            name=Text("condition.time_since_last_input"),
            unit=Unit.SECONDS_AGO,
            bounds=(0.0, 1e9),
            step=0.25,
            period=0.1,
            told_period=2.0,
            imagined={"input": 0.0, "away": 1e6},
        ),
    )
    """Seconds since the last key, pointer or touch, when it was read; "away" is longer than any setting."""
    LOCKED = (
        "locked",
        YesNo(
            title=Text("condition.title_screen_locked"),
            name=Text("condition.whether_screen_locked"),
            period=1.0,
            told_period=5.0,
            imagined={"locked": True, "unlocked": False},
        ),
    )
    FULL_SCREEN = (
        "full_screen",
        YesNo(
            title=Text("condition.title_full_screen"),
            name=Text("condition.whether_full_screen_program_open"),
            period=0.5,
            told_period=2.0,
            imagined={"fullscreen": True},
        ),
    )
    """Whether the foreground window fills a screen and is not ours."""
    INHIBITED = (
        "inhibited",
        YesNo(
            title=Text("condition.title_call_or_film"),
            name=Text("condition.whether_call_film_running"),
            period=2.0,
            told_period=2.0,
            imagined={"call": True, "film": True},
        ),
    )
    """Whether another program keeps the screen from going dark, as a call or a film does."""
    GPU_USE = (
        "gpu_use",
        Quantity(
            title=Text("condition.title_gpu_use"),
            name=Text("condition.what_other_programs_use_gpu"),
            unit=Unit.SHARE,
            bounds=(0.0, 1.0),
            step=0.1,
            period=0.5,
            told_period=2.0,
            limit=BUSY_GPU,
            imagined={"busy": 1.0},
        ),
    )
    """What other programs use of the GPU, 0..1."""
    PROCESSOR_USE = (
        "processor_use",
        Quantity(
            title=Text("condition.title_processor_use"),
            name=Text("condition.what_other_programs_use_processor"),
            unit=Unit.SHARE,
            bounds=(0.0, 1.0),
            step=0.1,
            period=2.0,
            told_period=2.0,
            limit=BUSY_PROCESSOR,
            imagined={"processor": 1.0},
        ),
    )
    """What other programs use of all processor cores together, 0..1."""
    GPU_MEMORY = (
        "gpu_memory",
        Quantity(
            title=Text("condition.title_free_gpu_memory"),
            name=Text("condition.how_much_gpu_memory_free"),
            unit=Unit.BYTES,
            bounds=(0, 1e15),
            step=64e6,
            period=0.5,
            told_period=2.0,
            imagined={"memory": 0},
        ),
    )
    """Free on the GPU, in bytes."""
    MEMORY = (
        "memory",
        Quantity(
            title=Text("condition.title_free_ram"),
            name=Text("condition.how_much_memory_free"),
            unit=Unit.BYTES,
            bounds=(0, 1e15),
            step=256e6,
            period=2.0,
            told_period=2.0,
            sensor="memory",
        ),
    )
    """Available in RAM, in bytes."""
    TEMPERATURE = (
        "temperature",
        Quantity(
            title=Text("condition.title_temperature"),
            name=Text("condition.how_warm_device"),
            unit=Unit.CELSIUS,
            bounds=(-50.0, 200.0),
            step=1.0,
            period=1.0,
            told_period=2.0,
        ),
    )
    """Of the device, in degrees Celsius."""
    POWER = (
        "power",
        Quantity(
            title=Text("condition.title_power"),
            name=Text("condition.what_device_draws"),
            unit=Unit.WATTS,
            bounds=(0.0, 10_000.0),
            step=5.0,
            period=2.0,
            told_period=2.0,
        ),
    )
    """What the device draws, in watts."""
    BATTERY = (
        "battery",
        YesNo(
            title=Text("condition.title_battery"),
            name=Text("condition.whether_computer_battery"),
            period=2.0,
            told_period=10.0,
            imagined={"battery": True, "mains": False},
            yes=Text("condition.on_battery"),
            no=Text("condition.on_mains"),
        ),
    )
    """Whether the computer runs on its battery."""
    METERED = (
        "metered",
        YesNo(
            title=Text("condition.title_metered_connection"),
            name=Text("condition.whether_connection_metered"),
            period=2.0,
            told_period=10.0,
            imagined={"metered": True, "unmetered": False},
        ),
    )


Seen = Mapping[Condition, Reading[Any]]
"""What one look at one source told."""


@dataclass(frozen=True)
class Conditions:
    """All readings as last seen; one that was not seen yet is missing."""

    graphical: bool = False
    """Whether anybody can sit at a screen of this computer; without, nobody does, and that is known."""
    readings: Seen = field(default_factory=lambda: dict.fromkeys(Condition, Reading()))

    def __getitem__(self, condition: Condition) -> Reading[Any]:
        return self.readings[condition]

    def with_seen(self, seen: Seen) -> Conditions:
        """These conditions with newer readings in place of the old ones."""
        return replace(self, readings={**self.readings, **seen})


def unreadable(condition: Condition) -> Text:
    """The sentence of a source that does not answer."""
    return Text("condition.computer_does_not_say", what=condition.spec.name)


def sensible(seen: Seen) -> Seen:
    """The same readings; those that tell what cannot be are silent."""
    return {condition: _checked(condition, reading) for condition, reading in seen.items()}


def _checked(condition: Condition, reading: Reading[Any]) -> Reading[Any]:
    match reading.source:
        case Source.ANSWERS:
            return reading if _may_be(condition, reading.value) else silent(unreadable(condition))
        case Source.SILENT:
            return silent(reading.note or unreadable(condition))
        case Source.MISSING:
            return reading


def _may_be(condition: Condition, value: Any) -> bool:
    match condition.spec:
        case YesNo():
            return isinstance(value, bool)
        case Quantity(bounds=(lowest, highest)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and bool(lowest <= value <= highest)
