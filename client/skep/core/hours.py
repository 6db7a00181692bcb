"""The weekly grid of hours: its text form, its words, and what it says of a moment. Pure.

A grid says for each hour of the week whether training is full, gentle or off. Its text names what is not full:
"off mon-fri 9-17, gentle sat-sun" is off from 9:00 to 17:00 on workdays and gentle all weekend; of two that overlap the
later one counts, and "22-6" runs into the next day. Hours are those of the clock on the wall: the time zone comes in as
an argument, so that a change of zone or of summer time needs no care elsewhere.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Final

HOURS: Final = 24
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK: Final = HOURS * len(DAYS)
FULL_WEEK: Final = "full"
FORM: Final = "full, or what is not full, such as off mon-fri 9-17, gentle sat-sun"

_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY: Final = f"(?:{'|'.join(DAYS)})"
_HOUR: Final = r"(?:[01]?\d|2[0-4])"
_ITEM: Final = rf"(?:full|gentle|off) (?:daily|{_DAY}(?:-{_DAY})?)(?: {_HOUR}-{_HOUR})?"
PATTERN: Final = rf"full|{_ITEM}(?:, {_ITEM})*"

ONE_DAY: Final = 86_400.0


class Grade(StrEnum):
    FULL = "full"
    GENTLE = "gentle"
    OFF = "off"


Grid = tuple[Grade, ...]
"""One grade for each hour of the week, Monday's first."""


@lru_cache(maxsize=8)
def grid(text: str) -> Grid:
    """The grid that `text` means; all hours are full where it means none, since settings are checked before."""
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
    """Hours counted from the day's beginning; beyond 24 they belong to the next day."""
    begin, end = map(int, text.split("-"))
    return range(begin, end if end > begin else end + HOURS)


def written(hours: Grid) -> str:
    """The shortest text of this form for a grid: days that are alike stand together."""
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


def in_words(text: str) -> str:
    """As "Off Monday to Friday from 9:00 to 17:00, gentle Saturday to Sunday; full otherwise."."""
    compact = written(grid(text))
    if compact == FULL_WEEK:
        return "Full at all hours."
    said = ", ".join(_item_in_words(item) for item in compact.split(", "))
    rest = "; full otherwise" if Grade.FULL in grid(text) else ""
    return f"{said[0].upper()}{said[1:]}{rest}."


def _item_in_words(item: str) -> str:
    grade, days, *span = item.split(" ")
    first, _, last = days.partition("-")
    named = _NAMES[DAYS.index(first)] + (f" to {_NAMES[DAYS.index(last)]}" if last else "")
    if not span:
        return f"{grade} {named}"
    begin, end = span[0].split("-")
    return f"{grade} {named} from {begin}:00 to {end}:00"


def at(hours: Grid, moment: datetime) -> Grade:
    """What a grid says of a moment on the wall clock."""
    return hours[moment.weekday() * HOURS + moment.hour]


def next_change(hours: Grid, now: float, zone: tzinfo, until: frozenset[Grade]) -> float | None:
    """When the grid first says one of `until` after `now`, in wall clock seconds; None when it never does."""
    moment = local(now, zone)
    hour = moment.replace(minute=0, second=0, microsecond=0, tzinfo=None)
    for ahead in range(1, WEEK + 1):
        then = hour + timedelta(hours=ahead)
        if at(hours, then) in until:
            # in an hour that summer time skips, this is the moment of the skip
            return then.replace(tzinfo=zone).timestamp()
    return None


def local(wall: float, zone: tzinfo) -> datetime:
    """A moment (wall clock seconds) in a time zone."""
    return datetime.fromtimestamp(wall, UTC).astimezone(zone)


def clock_time(wall: float, now: float, zone: tzinfo) -> str:
    """A moment as "15:30", with the day within a week, and else with the date; of no moment at all: "later"."""
    try:
        moment = local(wall, zone)
    except (ValueError, OverflowError, OSError):
        return "later"
    if abs(wall - now) < ONE_DAY:
        return f"{moment:%H:%M}"
    if 0 < wall - now < ONE_DAY * (len(DAYS) - 1):
        return f"{_NAMES[moment.weekday()]} {moment:%H:%M}"
    return f"{moment:%Y-%m-%d %H:%M}"
