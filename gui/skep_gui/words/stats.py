"""What this computer contributed and what it cost: figures, rows, reasons, and bars over time; and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final

from skep.core.record.contributions import Contribution, Tally, Totals
from skep.core.record.timeline_segments import Segment
from skep.core.record.usage import Period, Unit
from skep.core.settings.hours import local
from skep.core.text import NOTHING, Text
from skep.language import units
from skep.services.summary import Summary
from skep_gui.words.now import Figure
from skep_gui.words.projects import title_in
from skep_gui.words.speaker import Speaker, english, filled


@dataclass(frozen=True)
class Cell:
    """One bar; all measures are parts 0..1 of the whole strip.

    `upper` is the part of the height for lost samples. `tone` is a colour name of the theme, `name` the whole bar as a
    sentence, `key` the setting that it links to, "" if there is none.
    """

    left: float
    width: float
    height: float
    tone: str
    name: str
    key: str = ""
    upper: float = 0.0


@dataclass(frozen=True)
class Chart:
    """Bars, labels below them by position 0..1, and the value of the full height (0: no axis)."""

    cells: tuple[Cell, ...] = ()
    labels: tuple[tuple[float, str], ...] = ()
    top: float = 0.0


def nice_top(most: float) -> float:
    """The top of an axis: the least 1, 2, 4, 6 or 8 times a power of ten that is >= `most`, so that quarters are
    round.
    """
    if not math.isfinite(most) or most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= most)


CSV_COLUMNS = ("project", "contribution", "epoch", "samples", "state", "peers", "reason", "swarm")


class Measure(StrEnum):
    SAMPLES = "samples"
    HOURS = "hours"
    ENERGY = "energy"


@dataclass(frozen=True)
class Asked:
    """What the page asks of the ledger: bars by `unit`, and the timeline of the day `back` days ago."""

    unit: Unit = Unit.DAY
    back: int = 0


@dataclass(frozen=True)
class Record:
    """Data read from the ledger: each project and the total, the last periods, and one day's timeline."""

    projects: Mapping[str, Summary] = field(default_factory=dict)
    whole: Summary = field(default_factory=Summary)
    asked: Asked = field(default_factory=Asked)
    past: Sequence[Period] = ()
    day: tuple[float, float] = (0.0, 86_400.0)
    segments: Sequence[Segment] = ()
    reaction: Text = NOTHING
    now: float = 0.0
    """When it was read, in wall clock seconds."""
    zone: tzinfo = UTC


@dataclass(frozen=True)
class StatsRow:
    """One line of the table; `cells` belong to `heads`, the project's name first. `explained` is the line as a
    sentence.
    """

    cells: tuple[str, ...]
    explained: str


_LABELS: Final = {Unit.HOUR: 3, Unit.DAY: 2, Unit.WEEK: 2}
"""Every how many bars there is a label."""


class Stats(Speaker):
    def is_empty(self, record: Record) -> bool:
        return not record.projects

    def figures(self, record: Record) -> tuple[Figure, Figure, Figure, Figure]:
        return self._trained(record), self._confirmed(record), self._share(record), self._energy(record)

    def _trained(self, record: Record) -> Figure:
        spent = record.whole.spent
        below = filled(self.tr("%1 of it computing"), units.span(spent.computing))
        explained = self.tr(
            "Time in a swarm with a share above zero. Computing is the part the training itself measured."
        )
        return Figure(self.tr("Trained"), self.numbers.local(hours(spent.training)), below, explained)

    def _confirmed(self, record: Record) -> Figure:
        totals = record.whole.totals
        confirmed, pending = self.epochs(totals.confirmed.contributions), units.number(totals.pending.samples)
        below = filled(self.tr("%1 · %2\u00a0pending"), confirmed, pending)
        explained = self.tr("Samples that were averaged with another peer's and used by the model.")
        return Figure(self.tr("Samples confirmed"), units.number(totals.confirmed.samples), below, explained)

    def _share(self, record: Record) -> Figure:
        totals = record.whole.totals
        below = filled(self.tr("%1\u00a0lost"), units.number(totals.lost.samples))
        explained = self.tr("Of the samples that are settled; pending ones wait for the round at the end of the epoch.")
        return Figure(self.tr("Confirmed share"), units.percent(confirmed_part(totals)), below, explained)

    def _energy(self, record: Record) -> Figure:
        spent = record.whole.spent
        if not spent.measured:
            why = (
                self.tr("The device does not report its power.") if spent.training else self.tr("Nothing trained yet.")
            )
            return Figure(self.tr("Energy"), units.MISSING, why)
        whole = spent.measured > 0.99 * spent.training
        below = self.tr("while it trained") if whole else self.tr("measured in %1 of %2")
        below = filled(below, units.span(spent.measured), units.span(spent.training))
        explained = self.tr(
            "What the whole device drew while it trained, by its own sensor; other programs' use included."
        )
        return Figure(self.tr("Energy"), self.numbers.local(units.energy(spent.joules)), below, explained)

    # --- the table

    def heads(self) -> tuple[tuple[str, str], ...]:
        """Each column's name and its explanation."""
        return (
            ("", ""),
            (self.tr("Trained"), self.tr("Time in the swarm with a share above zero.")),
            (self.tr("Confirmed"), self.tr("Samples averaged with another peer's.")),
            (self.tr("Pending"), self.tr("Samples whose round is not over yet.")),
            (self.tr("Lost"), self.tr("Samples that were not averaged; the reasons are below.")),
            (self.tr("Of the swarm"), self.tr("Your part of the epochs that took samples of yours.")),
            (self.tr("Energy"), self.tr("What the device drew while it trained.")),
        )

    def rows(self, record: Record, titles: Mapping[str, str]) -> list[StatsRow]:
        """One for each project, with its title if known; and the total if there are several."""
        rows = [
            self._row(title_in(self.tongue, name, titles.get(name, name)), one) for name, one in record.projects.items()
        ]
        return [*rows, self._row(self.tr("All projects"), record.whole)] if len(rows) > 1 else rows

    def _row(self, name: str, one: Summary) -> StatsRow:
        totals, spent = one.totals, one.spent
        cells = (
            units.span(spent.training),
            units.number(totals.confirmed.samples),
            units.number(totals.pending.samples),
            units.number(totals.lost.samples),
            self.numbers.local(units.fine_percent(one.proportion.share)),
            self.numbers.local(units.energy(spent.joules)) if spent.measured else units.MISSING,
        )
        said = [f"{head}: {cell}" for (head, _), cell in zip(self.heads()[1:], cells, strict=True)]
        return StatsRow((name, *cells), f"{name}. {', '.join(said)}.")

    # --- lost contributions

    def reasons(self, record: Record) -> list[str]:
        """Why contributions were lost, the most frequent reason first."""
        return [self._reason(reason, lost) for reason, lost in record.whole.lost.items()]

    def _reason(self, reason: Text, lost: Tally) -> str:
        why = self.said(reason) or self.tr("no reason recorded")
        samples, epochs = units.number(lost.samples), self.epochs(lost.contributions)
        return filled(self.tr("%1: %2 samples in %3"), why[:1].upper() + why[1:], samples, epochs)

    def epochs(self, count: int) -> str:
        return self.tr("1 epoch") if count == 1 else filled(self.tr("%1 epochs"), units.number(count))

    # --- bars

    def units(self) -> Mapping[Unit, str]:
        return {Unit.HOUR: self.tr("By hour"), Unit.DAY: self.tr("By day"), Unit.WEEK: self.tr("By week")}

    def measures(self) -> Mapping[Measure, str]:
        return {
            Measure.SAMPLES: self.tr("Samples"),
            Measure.HOURS: self.tr("Hours trained"),
            Measure.ENERGY: self.tr("Energy in kWh"),
        }

    def bars(self, record: Record, measure: Measure) -> Chart:
        """One bar for each period, lost samples on top of the confirmed ones."""
        past, unit = record.past, record.asked.unit
        amounts = [_amounts(each, measure) for each in past]
        top = nice_top(max((main + lost for main, lost in amounts), default=0.0))
        wide, step = 1.0 / max(1, len(past)), _LABELS[unit]
        cells = [
            Cell(
                left=place * wide,
                width=wide,
                height=(main + lost) / top,
                tone="training",
                name=self._period(each, unit, record.zone),
                upper=lost / top,
            )
            for place, (each, (main, lost)) in enumerate(zip(past, amounts, strict=True))
        ]
        labels = [
            ((place + 0.5) * wide, self._tick(each.begin, unit, record.zone))
            for place, each in enumerate(past)
            if (len(past) - 1 - place) % step == 0
        ]
        return Chart(tuple(cells), tuple(labels), top)

    def _tick(self, moment: float, unit: Unit, zone: tzinfo) -> str:
        at = local(moment, zone)
        if unit is Unit.HOUR:
            return self.numbers.time(at)
        return f"{self.weekday(at)}{units.THIN}{at:%d}" if unit is Unit.DAY else self.numbers.date(at)

    def _period(self, period: Period, unit: Unit, zone: tzinfo) -> str:
        at = local(period.begin, zone)
        when = {
            Unit.HOUR: f"{self.date(at)} {self.numbers.time(at)}",
            Unit.DAY: self.date(at),
            Unit.WEEK: filled(self.tr("Week from %1"), self.date(at)),
        }[unit]
        spent = period.spent
        parts = [
            filled(self.tr("%1 confirmed"), units.number(period.confirmed)),
            filled(self.tr("%1 lost"), units.number(period.lost)),
            filled(self.tr("%1 trained"), units.span(spent.training)),
            *([self.numbers.local(units.energy(spent.joules))] if spent.measured else []),
        ]
        return f"{when}: {', '.join(parts)}"

    def date(self, at: datetime) -> str:
        return f"{self.weekday(at)} {self.numbers.date(at)}"

    def weekday(self, at: datetime) -> str:
        return (
            self.tr("Mon"),
            self.tr("Tue"),
            self.tr("Wed"),
            self.tr("Thu"),
            self.tr("Fri"),
            self.tr("Sat"),
            self.tr("Sun"),
        )[at.weekday()]


def _amounts(period: Period, measure: Measure) -> tuple[float, float]:
    match measure:
        case Measure.SAMPLES:
            return float(period.confirmed), float(period.lost)
        case Measure.HOURS:
            return period.spent.training / 3600, 0.0
        case Measure.ENERGY:
            return period.spent.joules / 3_600_000, 0.0


def hours(seconds: float) -> str:
    """A large figure: "12.4 h"; less than an hour in minutes."""
    return f"{seconds / 3600:.1f}{units.THIN}h" if seconds >= 3600 else units.span(seconds // 60 * 60)  # noqa: PLR2004


def confirmed_part(totals: Totals) -> float | None:
    """0..1 of the settled samples; None if none is settled."""
    settled = totals.confirmed.samples + totals.lost.samples
    return totals.confirmed.samples / settled if settled else None


def to_csv(contributions: Mapping[str, Sequence[Contribution]]) -> str:
    """Every contribution as a row. An apostrophe is put before text that a spreadsheet would evaluate as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for project, rows in contributions.items():
        for each in rows:
            lost = english.said(each.reason)
            row = (project, each.id, each.epoch, each.samples, str(each.state), each.peers, lost, each.swarm)
            writer.writerow([_harmless(value) for value in row])
    return out.getvalue()


def _harmless(value: str | int) -> str | int:
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
