"""The system's clocks as a port. Only adapters and the worker read the time in other ways."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final


class LocalZone(tzinfo):
    """This computer's time zone, queried each time, so that a change of the system's setting takes effect."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _moment: datetime | None) -> None:
        """None; the UTC offset includes it."""

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        there = moment.replace(tzinfo=UTC).astimezone()
        clock = there.replace(tzinfo=None)
        # the second occurrence of this hour, when summer time ends
        again = clock.replace(fold=0).astimezone().utcoffset() != there.utcoffset()
        return clock.replace(tzinfo=self, fold=int(again))


_ZONE: Final = LocalZone()


class SystemClock:
    """Implements ports.Clock."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def zone(self) -> tzinfo:
        if hasattr(time, "tzset"):  # not on Windows, where it is not needed
            time.tzset()
        return _ZONE
