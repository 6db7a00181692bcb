"""The system's time zone as a tzinfo: it follows the system, with summer time in both directions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from skep.adapters.clock import SystemClock

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def live_in() -> Iterator[Callable[[str], None]]:
    before = os.environ.get("TZ")

    def move(zone: str) -> None:
        os.environ["TZ"] = zone

    yield move
    os.environ.pop("TZ", None)
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize("day", [datetime(2026, 3, 28, 22, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)])
def test_it_shows_what_the_zone_shows_through_a_night_of_change(live_in: Callable[[str], None], day: datetime):
    live_in("Europe/Berlin")
    zone = SystemClock().zone()
    for quarters in range(32):
        moment = day + timedelta(minutes=15 * quarters)
        here, there = moment.astimezone(zone), moment.astimezone(BERLIN)
        assert (here.replace(tzinfo=None), here.fold) == (there.replace(tzinfo=None), there.fold)
        assert (here.utcoffset(), here.tzname()) == (there.utcoffset(), there.tzname())
        assert here.timestamp() == moment.timestamp()


def test_a_change_of_zone_is_followed(live_in: Callable[[str], None]):
    clock, noon = SystemClock(), datetime(2026, 6, 1, 12, tzinfo=UTC)
    live_in("Europe/Berlin")
    assert noon.astimezone(clock.zone()).hour == 14
    live_in("Asia/Tokyo")
    assert noon.astimezone(clock.zone()).hour == 21


def test_no_moment_has_no_offset():
    zone = SystemClock().zone()
    assert (zone.utcoffset(None), zone.dst(None), zone.tzname(None)) == (None, None, None)
