"""Numbers, sizes, lengths of time and moments as a person reads them here, without Qt.

Digits stand in groups of three behind a thin space and units are the SI's in every language, as ISO 80000 and DIN 5008
have them; what differs is the decimal sign, and how a date and a time are written. Those come from whoever knows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Final

from skep.language import units

Write = Callable[[datetime], str]
"""A moment in its own zone to the text of it."""
_DAY = 86_400


def _time(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


class Numbers:
    def __init__(self, decimal: str = ".", time: Write = _time, date: Write = _date) -> None:
        self.decimal, self._time, self._date = decimal, time, date

    def number(self, value: int) -> str:
        return units.number(value)

    def figure(self, value: float | None, digits: int = 1) -> str:
        """A measured value with fixed digits; a dash when there is none."""
        return self.local(units.figure(value, digits))

    def short(self, value: float) -> str:
        """With no more digits than it needs: 2.5, 10."""
        return self.local(f"{value:g}")

    def percent(self, share: float | None) -> str:
        return units.percent(share)

    def size(self, count: int) -> str:
        """Bytes in decimal units."""
        return self.local(units.size(count))

    def rough_size(self, count: int) -> str:
        """Estimated bytes, to two digits: 175800000 -> "180 MB"."""
        return self.local(units.size(roughly(count)).replace(f".0{units.THIN}", units.THIN))

    def span(self, seconds: float) -> str:
        """A length of time in its two largest units."""
        return units.span(seconds)

    def local(self, text: str) -> str:
        """A number that was written with a point, with the decimal sign of here."""
        return text.replace(".", self.decimal)

    def date(self, moment: datetime) -> str:
        return self._date(moment)

    def time(self, moment: datetime) -> str:
        return self._time(moment)

    def clock_time(self, wall: float, now: float, zone: tzinfo | None = None) -> str:
        """A moment (seconds since the epoch) as its time, with the date when it is a day or more away."""
        if not math.isfinite(wall):
            return units.MISSING
        moment = datetime.fromtimestamp(wall, tz=UTC).astimezone(zone)
        time = self._time(moment)
        return time if abs(wall - now) < _DAY else f"{self._date(moment)} {time}"


WRITTEN_PLAINLY: Final = Numbers()
"""As in English, in every country: 2.5, 15:30, 2027-12-31."""
_WRITTEN: Final = {"de": Numbers(",", date=lambda moment: f"{moment:%d.%m.%Y}")}


def written_in(language: str) -> Numbers:
    """As a language writes them where no system says it: 2,5 and 31.12.2027 in German."""
    return _WRITTEN.get(language, WRITTEN_PLAINLY)


def roughly(count: int) -> int:
    """To two digits: more would promise what an estimate cannot."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return round(count / step) * step
