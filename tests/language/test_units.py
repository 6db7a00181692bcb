"""Numbers, sizes and times as text for users."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from skep.language import units
from skep.language.units import WRITTEN_PLAINLY, written_in

DASH = "\N{EN DASH}"
THIN = "\N{THIN SPACE}"


def test_thousands_are_separated_by_thin_spaces() -> None:
    assert units.number(1_024) == f"1{THIN}024"
    assert units.number(999) == "999"
    assert units.number(1_234_567) == f"1{THIN}234{THIN}567"


def test_a_figure_that_is_no_number_is_a_dash() -> None:
    assert [units.figure(value) for value in (None, float("nan"), float("inf"), 2.345)] == [DASH, DASH, DASH, "2.3"]
    assert [units.percent(value) for value in (None, float("nan"), 0.2)] == [DASH, DASH, f"20{THIN}%"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (3_400_000, "3.4 MB"), (8_000_000_000, "8.0 GB"), (5e15, "5000.0 TB")],
)
def test_sizes_are_in_decimal_units(count: int, shown: str) -> None:
    assert units.size(count) == shown.replace(" ", THIN)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0_s"), (-3, "0_s"), (59.6, "1_min"), (90, "1_min 30_s"), (5400, "1_h 30_min"), (90_061, "1_d 1_h")],
)
def test_a_span_names_its_two_largest_units(seconds: float, shown: str) -> None:
    assert units.span(seconds) == shown.replace("_", THIN)


def test_a_moment_is_shown_in_the_local_zone_with_its_date_when_far() -> None:
    zone = timezone(timedelta(hours=2))
    noon = datetime(2026, 5, 1, 12, 0, tzinfo=UTC).timestamp()
    assert WRITTEN_PLAINLY.clock_time(noon, noon - 60, zone) == "14:00"
    assert WRITTEN_PLAINLY.clock_time(noon, noon - 90_000, zone) == "2026-05-01 14:00"


def test_german_has_its_own_decimal_sign_and_dates() -> None:
    german = written_in("de")
    assert (german.short(2.5), german.figure(1234.5)) == ("2,5", f"1{THIN}234,5")
    assert german.date(datetime(2027, 12, 31, tzinfo=UTC)) == "31.12.2027"


def test_energy_in_the_unit_that_fits() -> None:
    assert units.energy(3_600.0) == f"1.0{THIN}Wh"
    assert units.energy(3.6e6 * 1_234.5) == f"1{THIN}234.50{THIN}kWh"


def test_a_small_share_keeps_its_digits() -> None:
    assert [units.fine_percent(value) for value in (None, 0.0, 0.00123, 0.076, 0.5)] == [
        DASH,
        f"0{THIN}%",
        f"0.12{THIN}%",
        f"7.6{THIN}%",
        f"50{THIN}%",
    ]
