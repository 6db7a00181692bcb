"""The weekly grid: its text, its words, and its value at a given time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english
from skep.core.errors import SettingsError
from skep.core.settings import hours
from skep.core.settings.hours import Grade
from skep.core.settings.settings import parse, show

BERLIN = ZoneInfo("Europe/Berlin")
KEY = "when.schedule"


def grade(text: str, day: str, hour: int) -> Grade:
    return hours.grid(text)[hours.DAYS.index(day) * 24 + hour]


def test_a_text_names_what_is_not_full():
    text = "off mon-fri 9-17, gentle sat-sun"
    assert [grade(text, "mon", hour) for hour in (8, 9, 16, 17)] == ["full", "off", "off", "full"]
    assert grade(text, "sun", 0) is Grade.GENTLE
    assert grade(text, "fri", 12) is Grade.OFF


def test_of_two_that_overlap_the_later_counts():
    assert grade("off daily, full daily 22-6", "wed", 23) is Grade.FULL
    assert grade("off daily, full daily 22-6", "wed", 5) is Grade.FULL
    assert grade("off daily, full daily 22-6", "wed", 6) is Grade.OFF


def test_hours_and_days_run_over_the_end():
    assert grade("off sun 22-6", "mon", 5) is Grade.OFF
    assert grade("off sun 22-6", "sun", 5) is Grade.FULL
    assert [grade("off sat-mon", day, 0) for day in ("fri", "sat", "sun", "mon", "tue")] == [
        "full", "off", "off", "off", "full",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["off", "off monday", "off mon 25-26", "off mon 9", "gentle", "OFF mon", "off mon,", "off mon; off tue"]
)
def test_what_is_no_schedule_is_refused_in_words(text: str):
    with pytest.raises(SettingsError) as refused:
        parse(KEY, text)
    assert in_english(refused.value.title) == (
        "when.schedule must be full, or the hours that are not full, such as off mon-fri 9-17, gentle sat-sun."
    )
    assert set(hours.grid(text)) == {Grade.FULL}


def test_a_schedule_is_a_setting_that_reads_as_it_is_shown():
    assert parse(KEY, show(KEY, "off mon-fri 9-17, gentle sat-sun")) == "off mon-fri 9-17, gentle sat-sun"


@given(st.lists(st.sampled_from(list(Grade)), min_size=168, max_size=168))
def test_every_grid_can_be_written_and_is_read_again(grades: list[Grade]):
    assert hours.grid(hours.written(tuple(grades))) == tuple(grades)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("full", "Full at all hours."),
        (
            "off mon-fri 9-17, gentle sat-sun",
            "Off Monday to Friday from 9:00 to 17:00, gentle Saturday to Sunday; full otherwise.",
        ),
        ("off tue", "Off Tuesday; full otherwise."),
        (
            "gentle daily, off daily 0-6",
            "Off Monday to Sunday from 0:00 to 6:00, gentle Monday to Sunday from 6:00 to 24:00.",
        ),
    ],
)
def test_a_schedule_has_words(text: str, words: str):
    assert in_english(hours.in_words(text)) == words


def moment(text: str, zone=BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


NOT_OFF = frozenset({Grade.FULL, Grade.GENTLE})


def test_the_next_change_is_on_the_clock_of_the_wall():
    grid = hours.grid("off mon-fri 9-22")
    monday = moment("2026-03-02T10:30")
    assert hours.next_change(grid, monday, BERLIN, NOT_OFF) == moment("2026-03-02T22:00")
    assert hours.next_change(hours.grid("off daily"), monday, BERLIN, NOT_OFF) is None


def test_the_same_moment_is_another_hour_in_another_zone():
    now, grid = moment("2026-03-02T08:30"), hours.grid("off mon 8-9")
    assert hours.at(grid, hours.local(now, BERLIN)) is Grade.OFF
    assert hours.at(grid, hours.local(now, timezone(timedelta(hours=3)))) is Grade.FULL


def test_summer_time_moves_the_change_with_the_clock():
    # on 29 March 2026 the clock goes from 2:00 to 3:00, on 25 October from 3:00 back to 2:00
    grid = hours.grid("off daily 0-6")
    assert (
        hours.next_change(grid, moment("2026-03-29T00:30"), BERLIN, NOT_OFF) == moment("2026-03-29T00:30") + 4.5 * 3600
    )
    assert (
        hours.next_change(grid, moment("2026-10-25T00:30"), BERLIN, NOT_OFF) == moment("2026-10-25T00:30") + 6.5 * 3600
    )


def test_a_change_in_the_hour_that_is_skipped_comes_with_the_skip():
    grid = hours.grid("off daily 0-2")
    assert hours.next_change(grid, moment("2026-03-29T01:30"), BERLIN, NOT_OFF) == moment("2026-03-29T01:30") + 1800


def test_a_change_after_the_hour_that_comes_twice_waits_for_the_second():
    grid = hours.grid("off daily 0-3")
    first = moment("2026-10-25T02:30", fold=0)
    assert hours.next_change(grid, first, BERLIN, NOT_OFF) == first + 1.5 * 3600


def test_a_moment_is_told_as_short_as_it_can_be():
    now = moment("2026-03-02T10:30")
    assert in_english(hours.clock_time(moment("2026-03-02T15:30"), now, BERLIN)) == "15:30"
    assert in_english(hours.clock_time(moment("2026-03-04T22:00"), now, BERLIN)) == "Wednesday 22:00"
    assert in_english(hours.clock_time(moment("2026-05-04T22:00"), now, BERLIN)) == "2026-05-04 22:00"
    assert in_english(hours.clock_time(1e30, now, UTC)) == "later"
