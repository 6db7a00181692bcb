"""The verb `sensors`: what skep knows of this computer now, and what it cannot know here, with the reason."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import table
from skep.core.policy.conditions import Condition, Quantity, Reading, Seen, Source, Unit, YesNo, silent
from skep.core.text import verbatim
from skep.language import units
from skep.ports import Sensor

WITHIN: Final = 5.0
"""Seconds a source may take here; one that takes longer is called silent."""


def add(verbs: Verbs) -> None:
    verbs.verb("sensors", _sensors, tr("list what skep knows of this computer now, or why it cannot"))


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
            self._fail(tr("It did not answer within {seconds:.0f} seconds.", seconds=within))

    def _read(self) -> None:
        try:
            self.seen = self.sensor.read()
        except Exception as error:  # noqa: BLE001 - whatever a source raises counts as silence, as for the engine
            self._fail(tr("It could not be read: {reason}.", reason=error))
        self.sensor.close()
        self.sensor.wait(0.0)  # lets go of what only the reading thread may

    def _fail(self, note: str) -> None:
        self.seen = {condition: silent(verbatim(note)) for condition in self.sensor.conditions}


def _sensors(context: Context, _arguments: argparse.Namespace) -> int:
    looks = [Look(sensor) for sensor in bootstrap.all_sensors(context.home)]
    for look in looks:
        look.begin()
    for look in looks:
        look.end(WITHIN)
    found = [(look.sensor.name, condition, reading) for look in looks for condition, reading in look.seen.items()]
    context.terminal.show(
        {"sensors": [_body(*each) for each in found], "watches": watches(looks)},
        [table((tr("Reading"), tr("Now"), tr("Source")), [_row(*each) for each in found]), *watches(looks)],
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
    now, note = shown(condition, reading), say(reading.note)
    return (say(condition.spec.title), now, f"{sensor} ({note})" if reading.source is Source.ANSWERS else note)


def shown(condition: Condition, reading: Reading[Any]) -> str:
    """A reading as a person reads it; "not available" or "silent" where there is none."""
    match reading.source:
        case Source.MISSING:
            return tr("not available")
        case Source.SILENT:
            return tr("silent")
        case Source.ANSWERS:
            return _in_words(condition.spec, reading.value)


def _in_words(spec: YesNo | Quantity, value: Any) -> str:
    if isinstance(spec, YesNo):
        return say(spec.yes if value else spec.no)
    match spec.unit:
        case Unit.SECONDS_AGO:
            return tr("{span} ago", span=units.span(value))
        case Unit.SHARE:
            return units.percent(value)
        case Unit.BYTES:
            return numbers().size(value)
        case Unit.CELSIUS:
            return f"{value:.0f}{units.THIN}°C"
        case Unit.WATTS:
            return f"{value:.0f}{units.THIN}W"
