"""Hours, days and weeks in local time, also across a change of summer time."""

import random
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from skep.core.record.contributions import ContributionState, Tally
from skep.core.record.usage import COUNTS, Earned, Period, Quarter, Spent, Unit, day_of, periods, spans

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 18, 15, 42, 7, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("zone", [UTC, BERLIN, ZoneInfo("Asia/Kathmandu")])
def test_spans_follow_each_other_and_end_with_now(unit, zone):
    found = spans(unit, NOW, zone)
    assert len(found) == COUNTS[unit]
    assert all(before[1] == after[0] for before, after in pairwise(found))
    assert found[-1][0] <= NOW < found[-1][1]
    assert all(begin % 900 == 0 for begin, _ in found)


@pytest.mark.parametrize("zone", [UTC, BERLIN, ZoneInfo("Asia/Kathmandu")])
def test_hours_begin_exactly_at_a_full_quarter_at_any_moment(zone):
    chance = random.Random(0)
    for _ in range(200):
        (begin, _), *_ = spans(Unit.HOUR, NOW + chance.uniform(0.0, 3600.0), zone)
        assert begin % 900 == 0


def test_a_week_begins_on_monday():
    begin, end = spans(Unit.WEEK, NOW, BERLIN)[-1]
    assert datetime.fromtimestamp(begin, BERLIN) == datetime(2026, 11, 16, tzinfo=BERLIN)
    assert datetime.fromtimestamp(end, BERLIN) == datetime(2026, 11, 23, tzinfo=BERLIN)


def test_the_day_the_clock_is_put_back_has_25_hours():
    noon = datetime(2026, 10, 25, 12, tzinfo=BERLIN).timestamp()
    begin, end = day_of(noon, BERLIN)
    assert end - begin == 25 * 3600
    assert day_of(noon, BERLIN, back=1)[1] == begin


def test_each_span_holds_what_falls_into_it():
    quarters = [Quarter("p", 900.0, Spent(9.0, 8.0)), Quarter("q", 1800.0, Spent(1.0, 1.0))]
    earned = [
        Earned("p", 900.0, ContributionState.CONFIRMED, Tally(1, 10)),
        Earned("q", 900.0, ContributionState.CONFIRMED, Tally(1, 5)),
        Earned("p", 1800.0, ContributionState.LOST, Tally(1, 7)),
        Earned("p", 99_000.0, ContributionState.LOST, Tally(1, 7)),
    ]
    assert list(periods([(0.0, 1800.0), (1800.0, 3600.0)], quarters, earned)) == [
        Period(0.0, 1800.0, 15, 0, Spent(9.0, 8.0)),
        Period(1800.0, 3600.0, 0, 7, Spent(1.0, 1.0)),
    ]
