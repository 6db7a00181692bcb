"""The weekly grid of hours: its text form, its description, and its grade at a given time. Pure.

A grid has a grade for each hour of the week: full, gentle or off. Its text lists the hours that are not full:
"off mon-fri 9-17, gentle sat-sun" is off from 9:00 to 17:00 on workdays and gentle all weekend; of two that overlap the
later one counts, and "22-6" extends into the next day. Hours are in local time: the time zone is an argument, so that
changes of the zone or of summer time are handled here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Final

from skep.core.text import Text

HOURS: Final = 24
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK: Final = HOURS * len(DAYS)
FULL_WEEK: Final = "full"
FORM: Final = Text("hours.full_what_not_full_such")

_NAMES: Final = (
    Text("hours.monday"),
    Text("hours.tuesday"),
    Text("hours.wednesday"),
    Text("hours.thursday"),
    Text("hours.friday"),
    Text("hours.saturday"),
    Text("hours.sunday"),
)
_DAY: Final = f"(?:{'|'.join(DAYS)})"
_HOUR: Final = r"(?:[01]?\d|2[0-4])"
_ITEM: Final = rf"(?:full|gentle|off) (?:daily|{_DAY}(?:-{_DAY})?)(?: {_HOUR}-{_HOUR})?"
PATTERN: Final = f"full|{_ITEM}(?:, {_ITEM})*"

ONE_DAY: Final = 86_400.0


class Grade(StrEnum):
    FULL = "full"
    GENTLE = "gentle"
    OFF = "off"


_GRADES: Final = {
    Grade.FULL: Text("hours.grade_full"),
    Grade.GENTLE: Text("hours.grade_gentle"),
    Grade.OFF: Text("hours.grade_off"),
}

Grid = tuple[Grade, ...]
"""One grade for each hour of the week, Monday's first."""


@lru_cache(maxsize=8)
def grid(text: str) -> Grid:
    """The grid for `text`; all hours are full if it is invalid, since settings are checked before."""
    hours = [Grade.FULL] * WEEK
    if text == FULL_WEEK or not re.fullmatch(PATTERN, text, re.ASCII):
        return tuple(hours)
    for item in text.split(", "):
        grade, days, *span = item.split(" ")
        for day in _days(days):
            for hour in _hours(span[0] if span else "0-24"):
                hours[(day * HOURS + hour) % WEEK] = Grade(grade)
    return tuple(hours)


def _days(text: str) -> list[int]:
    if text == "daily":
        return list(range(len(DAYS)))
    first, _, last = text.partition("-")
    begin, end = DAYS.index(first), DAYS.index(last or first)
    return [day % len(DAYS) for day in range(begin, end + 1 + (len(DAYS) if end < begin else 0))]


def _hours(text: str) -> range:
    """Hours from the start of the day; those from 24 on belong to the next day."""
    begin, end = map(int, text.split("-"))
    return range(begin, end if end > begin else end + HOURS)


def written(hours: Grid) -> str:
    """The shortest text for a grid: equal days are combined."""
    days = [hours[day * HOURS : (day + 1) * HOURS] for day in range(len(DAYS))]
    items = []
    for alike, group in groupby(range(len(DAYS)), key=lambda day: days[day]):
        named = list(group)
        name = DAYS[named[0]] if len(named) == 1 else f"{DAYS[named[0]]}-{DAYS[named[-1]]}"
        items += [f"{grade} {name}{span}" for grade, span in _runs(alike)]
    return ", ".join(items) or FULL_WEEK


def _runs(day: Grid) -> list[tuple[Grade, str]]:
    runs: list[tuple[Grade, str]] = []
    begin = 0
    for grade, group in groupby(day):
        end = begin + len(list(group))
        if grade is not Grade.FULL:
            runs.append((grade, "" if (begin, end) == (0, HOURS) else f" {begin}-{end}"))
        begin = end
    return runs


def in_words(text: str) -> Text:
    """As "Off Monday to Friday from 9:00 to 17:00, gentle Saturday to Sunday; full otherwise."."""
    compact = written(grid(text))
    if compact == FULL_WEEK:
        return Text("hours.full_all_hours")
    items = tuple(_item_in_words(item) for item in compact.split(", "))
    if Grade.FULL in grid(text):
        return Text("hours.full_otherwise", items=items)
    return Text("hours.items", items=items)


def _item_in_words(item: str) -> Text:
    grade, days, *span = item.split(" ")
    first, _, last = days.partition("-")
    named = _NAMES[DAYS.index(first)]
    if last:
        named = Text("hours.days", first=named, last=_NAMES[DAYS.index(last)])
    said = _GRADES[Grade(grade)]
    if not span:
        return Text("hours.all_day", grade=said, days=named)
    begin, end = span[0].split("-")
    return Text("hours.part_of_day", grade=said, days=named, begin=f"{begin}:00", end=f"{end}:00")


def at(hours: Grid, moment: datetime) -> Grade:
    """The grade of a grid at a local time."""
    return hours[moment.weekday() * HOURS + moment.hour]


def next_change(hours: Grid, now: float, zone: tzinfo, until: frozenset[Grade]) -> float | None:
    """When the grid next has one of the grades `until` after `now`, in wall clock seconds; None if never."""
    moment = local(now, zone)
    hour = moment.replace(minute=0, second=0, microsecond=0, tzinfo=None)
    for ahead in range(1, WEEK + 1):
        then = hour + timedelta(hours=ahead)
        if at(hours, then) in until:
            # for an hour skipped by summer time, this is the time of the skip
            return then.replace(tzinfo=zone).timestamp()
    return None


def local(wall: float, zone: tzinfo) -> datetime:
    """The local time of `wall` (wall clock seconds) in a time zone."""
    return datetime.fromtimestamp(wall, UTC).astimezone(zone)


def clock_time(wall: float, now: float, zone: tzinfo) -> Text:
    """A time as "15:30", with the day within a week, otherwise with the date; "later" if it is not a valid time."""
    try:
        moment = local(wall, zone)
    except (ValueError, OverflowError, OSError):
        return Text("hours.later")
    if abs(wall - now) < ONE_DAY:
        return Text("hours.today", time=f"{moment:%H:%M}")
    if 0 < wall - now < ONE_DAY * (len(DAYS) - 1):
        return Text("hours.this_week", day=_NAMES[moment.weekday()], time=f"{moment:%H:%M}")
    return Text("hours.date", date=f"{moment:%Y-%m-%d}", time=f"{moment:%H:%M}")
