"""Resource usage and earned samples of a project, by quarters of an hour, hours, days and weeks. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from skep.core.record.contributions import ContributionState, Tally
from skep.core.settings.hours import local

QUARTER: Final = 900.0
"""Seconds. In every time zone, hours and days consist of whole quarters of an hour."""


@dataclass(frozen=True)
class Spent:
    """Seconds and joules. `staying` is the time in the project, `training` the part with a share above 0, `computing`
    as measured by the worker. `joules` is the device's energy during `measured`, the part of `training` with known
    power.
    """

    staying: float = 0.0
    training: float = 0.0
    computing: float = 0.0
    joules: float = 0.0
    measured: float = 0.0

    def plus(self, more: Spent) -> Spent:
        return Spent(*map(operator.add, astuple(self), astuple(more)))


@dataclass(frozen=True)
class Quarter:
    """The usage of one project in the quarter of an hour that begins at `begin`, in wall clock seconds."""

    project: str
    begin: float
    spent: Spent


@dataclass(frozen=True)
class Earned:
    """The contributions confirmed or lost in the quarter of an hour that begins at `begin`."""

    project: str
    begin: float
    state: ContributionState
    tally: Tally


@dataclass(frozen=True)
class Proportion:
    """Confirmed samples, and the samples of the whole swarm in the same epochs, where known."""

    samples: int = 0
    swarm: int = 0

    @property
    def share(self) -> float | None:
        """The fraction 0..1; None while nothing is known."""
        return min(1.0, self.samples / self.swarm) if self.swarm else None


@dataclass(frozen=True)
class Meter:
    """The usage in the quarter that begins at `quarter` that is not written yet."""

    quarter: float = 0.0
    spent: Spent = field(default_factory=Spent)


def quarter_of(wall: float) -> float:
    return wall // QUARTER * QUARTER


class Unit(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


COUNTS: Final = {Unit.HOUR: 24, Unit.DAY: 14, Unit.WEEK: 12}
"""The number of periods shown for each unit, including the current one."""


@dataclass(frozen=True)
class Period:
    """Confirmed and lost samples and the usage in the span [begin, end) of wall clock seconds."""

    begin: float
    end: float
    confirmed: int = 0
    lost: int = 0
    spent: Spent = field(default_factory=Spent)


def day_of(now: float, zone: tzinfo, back: int = 0) -> tuple[float, float]:
    """The start and end of the day `back` days before now, in wall clock seconds; 23 to 25 hours apart."""
    day = local(now, zone).date() - timedelta(days=back)
    begin, end = (datetime(each.year, each.month, each.day, tzinfo=zone) for each in (day, day + timedelta(days=1)))
    return begin.timestamp(), end.timestamp()


def spans(unit: Unit, now: float, zone: tzinfo) -> Sequence[tuple[float, float]]:
    """The latest spans of `unit`, oldest first; the last one contains `now`."""
    count = COUNTS[unit]
    match unit:
        case Unit.HOUR:
            first = local(now, zone)
            begin = float(round(now - first.minute * 60 - first.second - first.microsecond / 1e6))
            return [(begin - 3600.0 * back, begin - 3600.0 * (back - 1)) for back in range(count - 1, -1, -1)]
        case Unit.DAY:
            return [day_of(now, zone, back) for back in range(count - 1, -1, -1)]
        case Unit.WEEK:
            monday = local(now, zone).weekday()
            first_days = [monday + 7 * back for back in range(count - 1, -1, -1)]
            return [(day_of(now, zone, back)[0], day_of(now, zone, back - 7)[0]) for back in first_days]


def periods(
    asked: Iterable[tuple[float, float]], quarters: Iterable[Quarter], earned: Iterable[Earned]
) -> Sequence[Period]:
    """The usage and samples of each span."""
    made = [Period(*span) for span in asked]
    for quarter in quarters:
        made = [_if_inside(each, quarter.begin, spent=each.spent.plus(quarter.spent)) for each in made]
    for one in earned:
        samples = one.tally.samples
        if one.state is ContributionState.CONFIRMED:
            made = [_if_inside(each, one.begin, confirmed=each.confirmed + samples) for each in made]
        else:
            made = [_if_inside(each, one.begin, lost=each.lost + samples) for each in made]
    return made


def _if_inside(period: Period, moment: float, **changes: int | Spent) -> Period:
    return replace(period, **changes) if period.begin <= moment < period.end else period  # type: ignore[arg-type]
