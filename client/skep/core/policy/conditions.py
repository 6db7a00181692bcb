"""The conditions that rules use, their readings, the check of their values, and the filter for changed readings. Pure.

A sensor is read several times a second and mostly repeats its value. The time since the last input grows by itself, so
only a new input is reported, at most once a second while the user keeps typing.
"""

from __future__ import annotations

import math
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
    """`value` is None unless the source answers; `note` says why there is no value, or names the source.

    Where the value is one of several devices, or their sum, `each` has that of each that answers, by Device.choice.
    """

    value: T_co | None = None
    source: Source = Source.MISSING
    note: Text = NOTHING
    each: Mapping[str, T_co] = field(default_factory=dict)


def answered(value: T, note: Text = NOTHING, each: Mapping[str, T] | None = None) -> Reading[T]:
    """A reading with a value. `note` names the source."""
    return Reading(value, Source.ANSWERS, note, each or {})


def missing(note: Text) -> Reading[Any]:
    """This computer has no such source; `note` says so: "This computer has no battery."."""
    return Reading(None, Source.MISSING, note)


def silent(note: Text) -> Reading[Any]:
    """The source exists and does not answer; `note` says which: "The screen does not say when it was last used."."""
    return Reading(None, Source.SILENT, note)


BUSY_GPU: Final = 0.15
"""Above this utilisation by other programs, the GPU counts as busy."""
BUSY_PROCESSOR: Final = 0.60
"""Above this utilisation of all cores together by other programs, the processor counts as busy."""


class Unit(Enum):
    SECONDS_AGO = "seconds since it happened"
    SHARE = "0..1"
    BYTES = "bytes"
    CELSIUS = "degrees Celsius"
    WATTS = "watts"


_YES: Final = Text("condition.yes")
_NO: Final = Text("condition.no")


@dataclass(frozen=True)
class YesNo:
    """The type of a true or false reading; `yes` and `no` are the words for its values."""

    yes: Text = _YES
    no: Text = _NO


@dataclass(frozen=True)
class Quantity:
    """The type of a numeric reading in `unit`. A value outside `bounds` is invalid.

    A value is reported when it differs by `step` from the last one reported, or crosses `limit`.
    """

    unit: Unit
    bounds: tuple[float, float]
    step: float
    limit: float | None = None


@dataclass(frozen=True)
class Names:
    """`key` names the reading in data, `title` in lists, `phrase` at the end of a sentence."""

    key: str
    title: Text
    phrase: Text


@dataclass(frozen=True)
class Periods:
    """Seconds between two readings: `asked` for a source that is polled, `told` for one that also notifies."""

    asked: float
    told: float


@dataclass(frozen=True)
class ConditionSpec:
    """The properties of one condition.

    `imagined` maps the words of `explain --if` to the values that they stand for. `sensor` is the module of
    `skep.adapters.sensors` whose SENSOR reads the condition, where one sensor serves every system.
    """

    names: Names
    periods: Periods
    values: YesNo | Quantity
    imagined: Mapping[str, float | bool] = field(default_factory=dict)
    sensor: str = ""


class Condition(StrEnum):
    """The conditions. Those of a device are of the devices that train, or would train."""

    spec: ConditionSpec

    def __new__(cls, spec: ConditionSpec) -> Self:
        made = str.__new__(cls, spec.names.key)
        made._value_, made.spec = spec.names.key, spec
        return made

    INPUT = ConditionSpec(
        Names("input", Text("condition.title_last_input"), Text("condition.time_since_last_input")),
        Periods(0.1, 2.0),
        Quantity(Unit.SECONDS_AGO, (0.0, 1e9), step=0.25),
        {"input": 0.0, "away": 1e6},
    )
    """Seconds from the last key, pointer or touch input to the reading; "away" is longer than any setting."""
    LOCKED = ConditionSpec(
        Names("locked", Text("condition.title_screen_locked"), Text("condition.whether_screen_locked")),
        Periods(1.0, 5.0),
        YesNo(),
        {"locked": True, "unlocked": False},
    )
    FULL_SCREEN = ConditionSpec(
        Names("full_screen", Text("condition.title_full_screen"), Text("condition.whether_full_screen_program_open")),
        Periods(0.5, 2.0),
        YesNo(),
        {"fullscreen": True},
    )
    """Whether the foreground window fills a screen and is not skep's."""
    INHIBITED = ConditionSpec(
        Names("inhibited", Text("rule.call_film"), Text("condition.whether_call_film_running")),
        Periods(2.0, 2.0),
        YesNo(),
        {"call": True, "film": True},
    )
    """Whether another program prevents the screen from turning off, as during a call or a film."""
    GPU_USE = ConditionSpec(
        Names("gpu_use", Text("condition.title_gpu_use"), Text("condition.what_other_programs_use_gpu")),
        Periods(0.5, 2.0),
        Quantity(Unit.SHARE, (0.0, 1.0), step=0.1, limit=BUSY_GPU),
        {"busy": 1.0},
    )
    """The utilisation of the GPU by other programs, 0..1; of several, the highest."""
    PROCESSOR_USE = ConditionSpec(
        Names(
            "processor_use", Text("condition.title_processor_use"), Text("condition.what_other_programs_use_processor")
        ),
        Periods(2.0, 2.0),
        Quantity(Unit.SHARE, (0.0, 1.0), step=0.1, limit=BUSY_PROCESSOR),
        {"processor": 1.0},
    )
    """The utilisation of all processor cores together by other programs, 0..1."""
    GPU_MEMORY = ConditionSpec(
        Names("gpu_memory", Text("condition.title_free_gpu_memory"), Text("condition.how_much_gpu_memory_free")),
        Periods(0.5, 2.0),
        Quantity(Unit.BYTES, (0, 1e15), step=64e6),
        {"memory": 0},
    )
    """Free memory of the GPU, in bytes; of several, the least."""
    MEMORY = ConditionSpec(
        Names("memory", Text("condition.title_free_ram"), Text("condition.how_much_memory_free")),
        Periods(2.0, 2.0),
        Quantity(Unit.BYTES, (0, 1e15), step=256e6),
        sensor="memory",
    )
    """Available RAM, in bytes."""
    TEMPERATURE = ConditionSpec(
        Names("temperature", Text("condition.title_temperature"), Text("condition.how_warm_device")),
        Periods(1.0, 2.0),
        Quantity(Unit.CELSIUS, (-50.0, 200.0), step=1.0),
    )
    """Temperature of the device, in degrees Celsius; of several, the highest."""
    POWER = ConditionSpec(
        Names("power", Text("condition.title_power"), Text("condition.what_device_draws")),
        Periods(2.0, 2.0),
        Quantity(Unit.WATTS, (0.0, 10_000.0), step=5.0),
    )
    """Power draw of the device, in watts; of several, the sum."""
    BATTERY = ConditionSpec(
        Names("battery", Text("rule.battery"), Text("condition.whether_computer_battery")),
        Periods(2.0, 10.0),
        YesNo(yes=Text("condition.on_battery"), no=Text("condition.on_mains")),
        {"battery": True, "mains": False},
    )
    """Whether the computer runs on its battery."""
    METERED = ConditionSpec(
        Names("metered", Text("rule.metered_connection"), Text("condition.whether_connection_metered")),
        Periods(2.0, 10.0),
        YesNo(),
        {"metered": True, "unmetered": False},
    )


Seen = Mapping[Condition, Reading[Any]]
"""The readings of one source at one time."""


@dataclass(frozen=True)
class Conditions:
    """The latest reading of each condition; a condition without a reading yet is missing."""

    graphical: bool = False
    """Whether this computer has a graphical session; without one, it is known to have no user at a screen."""
    readings: Seen = field(default_factory=lambda: dict.fromkeys(Condition, Reading()))

    def __getitem__(self, condition: Condition) -> Reading[Any]:
        return self.readings[condition]

    def with_seen(self, seen: Seen) -> Conditions:
        """A copy with the newer readings in `seen`."""
        return replace(self, readings={**self.readings, **seen})


def unreadable(condition: Condition) -> Text:
    """The sentence for a source that does not answer."""
    return Text("condition.computer_does_not_say", what=condition.spec.names.phrase)


def sensible(seen: Seen) -> Seen:
    """The same readings; those with invalid values are made silent."""
    return {condition: _checked(condition, reading) for condition, reading in seen.items()}


def _checked(condition: Condition, reading: Reading[Any]) -> Reading[Any]:
    match reading.source:
        case Source.ANSWERS:
            sound = {device: value for device, value in reading.each.items() if _may_be(condition, value)}
            return replace(reading, each=sound) if _may_be(condition, reading.value) else silent(unreadable(condition))
        case Source.SILENT:
            return silent(reading.note or unreadable(condition))
        case Source.MISSING:
            return reading


def _may_be(condition: Condition, value: Any) -> bool:
    match condition.spec.values:
        case YesNo():
            return isinstance(value, bool)
        case Quantity(bounds=(lowest, highest)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and bool(lowest <= value <= highest)


# --- which readings are reported: those that changed

INPUT_SECONDS: Final = 1.0
"""The minimum between two reports of input."""


@dataclass(frozen=True)
class Told:
    """A reported reading; `at` is when it was taken, in monotonic seconds."""

    reading: Reading[Any]
    at: float


def news(told: Mapping[Condition, Told], seen: Seen, at: float) -> Seen:
    """The readings of `seen`, read at `at`, that differ enough from those already reported."""
    return {
        condition: reading
        for condition, reading in seen.items()
        if condition not in told or _is_news(condition, told[condition], Told(reading, at))
    }


def _is_news(condition: Condition, before: Told, after: Told) -> bool:
    old, new = _number(before.reading), _number(after.reading)
    if old is None or new is None:
        return before.reading != after.reading
    kind = condition.spec.values
    if not isinstance(kind, Quantity):
        return new != old
    if kind.unit is Unit.SECONDS_AGO:
        later = (after.at - new) - (before.at - old) > kind.step
        return later and (after.at - before.at >= INPUT_SECONDS or old >= INPUT_SECONDS)
    earlier, later_ones = before.reading.each, after.reading.each
    if earlier.keys() != later_ones.keys():
        return True
    return _differs(kind, old, new) or any(_differs(kind, earlier[each], later_ones[each]) for each in earlier)


def _differs(kind: Quantity, old: float, new: float) -> bool:
    crossed = kind.limit is not None and (old > kind.limit) != (new > kind.limit)
    return crossed or not abs(new - old) < kind.step


def _number(reading: Reading[Any]) -> float | None:
    """The value of a reading where it is a finite number of at least 0, else None."""
    value = reading.value
    if reading.source is not Source.ANSWERS or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None
