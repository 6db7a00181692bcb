"""The four lengths of a pause, the same wherever one can be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from skep_gui.words.speaker import Speaker

MORNING: Final = 8
"""The hour at which "until tomorrow" ends, on this computer's clock."""


@dataclass(frozen=True)
class PauseChoice:
    """`until` is wall clock seconds, None: until the person resumes."""

    text: str
    until: float | None


class Pauses(Speaker):
    def choices(self, now: float, zone: tzinfo | None = None) -> list[PauseChoice]:
        """`now` is wall clock seconds; `zone` is the system's unless given."""
        return [
            PauseChoice(self.tr("For 15 minutes"), now + 15 * 60),
            PauseChoice(self.tr("For 1 hour"), now + 3600),
            PauseChoice(self._tomorrow(tomorrow(now, zone), zone), tomorrow(now, zone)),
            PauseChoice(self.tr("Until I resume"), None),
        ]

    def _tomorrow(self, until: float, zone: tzinfo | None) -> str:
        time = self.numbers.time(datetime.fromtimestamp(until, tz=UTC).astimezone(zone))
        return self.tr("Until tomorrow, %1").replace("%1", time)


def tomorrow(now: float, zone: tzinfo | None = None) -> float:
    """The next day's morning in seconds since the epoch."""
    here = datetime.fromtimestamp(now, tz=UTC).astimezone(zone)
    day = (here + timedelta(days=1)).date()
    naive = datetime(day.year, day.month, day.day, MORNING)  # noqa: DTZ001 - the clock of the day after a change of the hour
    return (naive.astimezone() if zone is None else naive.replace(tzinfo=zone)).timestamp()
