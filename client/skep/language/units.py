"""Formatting of numbers, sizes, durations and times, without Qt.

In every language digits are grouped by three with a thin space and units are SI units, as in ISO 80000 and DIN 5008:
those are functions here. `Numbers` has what differs by language: the decimal sign, and the format of dates and times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

THIN: Final = "\N{THIN SPACE}"
MISSING: Final = "\N{EN DASH}"
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_DAY: Final = 86_400


def number(value: int) -> str:
    """1024 -> "1 024", with a thin space."""
    return f"{value:,}".replace(",", THIN)


def figure(value: float | None, digits: int = 1) -> str:
    """A measured value with fixed digits; a dash when there is none or it is not a number."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.{digits}f}".replace(",", THIN)


def percent(share: float | None) -> str:
    """0.2 -> "20 %"."""
    if share is None or not math.isfinite(share):
        return MISSING
    return f"{share * 100:.0f}{THIN}%"


def whole(value: float, unit: str) -> str:
    """71.4 and "°C" -> "71 °C"."""
    return f"{value:.0f}{THIN}{unit}"


def size(count: int) -> str:
    """Bytes in decimal units: 3400000 -> "3.4 MB"."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if abs(value) < 1000:  # noqa: PLR2004 - the step between decimal units
            return f"{value:.0f}{THIN}{unit}" if unit == "B" else f"{value:.1f}{THIN}{unit}"
        value /= 1000
    return f"{value:.1f}{THIN}{_UNITS[-1]}"


def span(seconds: float) -> str:
    """A length of time in its two largest units: 5400 -> "1 h 30 min"."""
    left = max(0, round(seconds))
    parts = []
    for name, length in (("d", _DAY), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{THIN}{name}")
    return " ".join(parts[:2]) or f"0{THIN}s"


def energy(joules: float) -> str:
    """3600000 -> "1.00 kWh"; below a tenth of it in watt-hours."""
    hours = joules / 3600
    return f"{hours / 1000:,.2f}{THIN}kWh".replace(",", THIN) if hours >= 100 else f"{hours:.1f}{THIN}Wh"  # noqa: PLR2004


def fine_percent(share: float | None) -> str:
    """0.0123 -> "1.2 %", for shares of a large whole; a dash when there is none."""
    if share is None:
        return MISSING
    return f"{share * 100:.0f}{THIN}%" if share >= 0.1 or share == 0 else f"{share * 100:.2g}{THIN}%"  # noqa: PLR2004


def roughly(count: int) -> int:
    """To two digits: more would promise what an estimate cannot."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return round(count / step) * step


Write = Callable[[datetime], str]
"""A moment in its own zone to the text of it."""


@dataclass(frozen=True)
class Numbers:
    """The formats of one language. `time` and `date` are given by the caller: from here, or from the system."""

    decimal: str = "."
    time: Write = lambda moment: f"{moment:%H:%M}"
    date: Write = lambda moment: f"{moment:%Y-%m-%d}"

    def figure(self, value: float | None, digits: int = 1) -> str:
        """A measured value with fixed digits; a dash when there is none."""
        return self.local(figure(value, digits))

    def short(self, value: float) -> str:
        """With no more digits than it needs: 2.5, 10."""
        return self.local(f"{value:g}")

    def size(self, count: int) -> str:
        """Bytes in decimal units."""
        return self.local(size(count))

    def rough_size(self, count: int) -> str:
        """Estimated bytes, to two digits: 175800000 -> "180 MB"."""
        return self.local(size(roughly(count)).replace(f".0{THIN}", THIN))

    def local(self, text: str) -> str:
        """A number that was written with a point, with the decimal sign of here."""
        return text.replace(".", self.decimal)

    def clock_time(self, wall: float, now: float, zone: tzinfo | None = None) -> str:
        """A moment (seconds since the epoch) as its time, with the date when it is a day or more away."""
        if not math.isfinite(wall):
            return MISSING
        moment = datetime.fromtimestamp(wall, tz=UTC).astimezone(zone)
        time = self.time(moment)
        return time if abs(wall - now) < _DAY else f"{self.date(moment)} {time}"


WRITTEN_PLAINLY: Final = Numbers()
"""As in English, in every country: 2.5, 15:30, 2027-12-31."""
_WRITTEN: Final = {"de": Numbers(",", date=lambda moment: f"{moment:%d.%m.%Y}")}


def written_in(language: str) -> Numbers:
    """As a language writes them where no system says it: 2,5 and 31.12.2027 in German."""
    return _WRITTEN.get(language, WRITTEN_PLAINLY)
