"""The verb `sensors`: what skep knows of this computer now, and what it cannot know here, with the reason."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skep import bootstrap
from skep.cli import words
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.conditions import Condition, Reading, Seen, Source, silent
from skep.ports import Sensor

WITHIN: Final = 5.0
"""Seconds a source may take here; one that takes longer is called silent."""

_TITLES: Final = {
    Condition.INPUT: "Last input",
    Condition.LOCKED: "Screen locked",
    Condition.FULL_SCREEN: "Full screen",
    Condition.INHIBITED: "Call or film",
    Condition.GPU_USE: "GPU use by others",
    Condition.PROCESSOR_USE: "Processor use by others",
    Condition.GPU_MEMORY: "Free GPU memory",
    Condition.MEMORY: "Free RAM",
    Condition.TEMPERATURE: "Temperature",
    Condition.POWER: "Power",
    Condition.BATTERY: "Battery",
    Condition.METERED: "Metered connection",
}


def add(verbs: Verbs) -> None:
    verbs.verb("sensors", _sensors, "list what skep knows of this computer now, or why it cannot")


@dataclass
class Look:
    """One reading of one sensor, in a thread of its own, since any source may hang."""

    sensor: Sensor
    seen: Seen = field(default_factory=dict)

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._read, name=self.sensor.name, daemon=True)
        self._thread.start()

    def end(self, within: float) -> None:
        self._thread.join(within)
        if self._thread.is_alive():
            self._fail(f"It did not answer within {within:.0f} seconds.")

    def _read(self) -> None:
        try:
            self.seen = self.sensor.read()
        except Exception as error:  # noqa: BLE001 - whatever a source raises counts as silence, as for the engine
            self._fail(f"It could not be read: {error}.")
        self.sensor.close()
        self.sensor.wait(0.0)  # lets go of what only the reading thread may

    def _fail(self, note: str) -> None:
        self.seen = {condition: silent(note) for condition in self.sensor.conditions}


def _sensors(context: Context, _arguments: argparse.Namespace) -> int:
    looks = [Look(sensor) for sensor in bootstrap.all_sensors(context.home)]
    for look in looks:
        look.begin()
    for look in looks:
        look.end(WITHIN)
    found = [(look.sensor.name, condition, reading) for look in looks for condition, reading in look.seen.items()]
    context.terminal.show(
        {"sensors": [_body(*each) for each in found], "watches": watches(looks)},
        [table(("Reading", "Now", "Source"), [_row(*each) for each in found]), *watches(looks)],
    )
    return 0


def watches(looks: Sequence[Look]) -> list[str]:
    """What only tells when something happens."""
    return [look.sensor.name for look in looks if not look.sensor.conditions]


def _body(sensor: str, condition: Condition, reading: Reading[Any]) -> dict[str, Any]:
    return {
        "condition": str(condition),
        "sensor": sensor,
        "source": str(reading.source),
        "value": reading.value,
        "note": reading.note,
    }


def _row(sensor: str, condition: Condition, reading: Reading[Any]) -> tuple[str, str, str]:
    now = shown(condition, reading)
    return (_TITLES[condition], now, f"{sensor} ({reading.note})" if reading.source is Source.ANSWERS else reading.note)


def shown(condition: Condition, reading: Reading[Any]) -> str:
    """A reading as a person reads it; "not available" and "silent" where there is none."""
    match reading.source:
        case Source.MISSING:
            return "not available"
        case Source.SILENT:
            return "silent"
        case Source.ANSWERS:
            return _SHOWN.get(condition, _yes_no)(reading.value)


def _yes_no(value: Any) -> str:
    return "yes" if value else "no"


_SHOWN: Final[dict[Condition, Callable[[Any], str]]] = {
    Condition.INPUT: lambda seconds: f"{words.span(seconds)} ago",
    Condition.GPU_USE: words.percent,
    Condition.PROCESSOR_USE: words.percent,
    Condition.GPU_MEMORY: words.size,
    Condition.MEMORY: words.size,
    Condition.TEMPERATURE: lambda degrees: f"{degrees:.0f}{words.THIN}°C",
    Condition.POWER: lambda watts: f"{watts:.0f}{words.THIN}W",
    Condition.BATTERY: lambda on_battery: "on battery" if on_battery else "on mains",
}
