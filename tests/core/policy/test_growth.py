"""When the processes of a worker have grown too much: compared with what they used at first, and for good."""

from __future__ import annotations

import pytest

from skep.core.policy.growth import MEASUREMENTS, Growth, Use

GB = 1_000_000_000
FIRST = Use(4 * GB, 100, 0.1)


def after(*uses: Use, growth: Growth = Growth(), present: bool = False) -> Growth:  # noqa: B008 - frozen
    for use in uses:
        growth = growth.after(use, present=present)
    return growth


@pytest.mark.parametrize(
    ("first", "most"),
    [
        (Use(GB, 100, 0.0), Use(2 * GB, 600, 0.5)),  # by a gigabyte, by 500 threads, to half of the descriptors
        (Use(8 * GB, 800, 0.6), Use(12 * GB, 1600, 0.8)),  # by half, to twice as many, half of those that were left
    ],
)
def test_how_far_each_may_grow(first: Use, most: Use):
    assert not most.exceeds(first)
    assert Use(most.memory + 1, most.threads, most.descriptors).exceeds(first)
    assert Use(most.memory, most.threads + 1, most.descriptors).exceeds(first)
    assert Use(most.memory, most.threads, most.descriptors + 0.01).exceeds(first)


def test_growth_that_lasts_is_too_much():
    more = Use(9 * GB, 100, 0.1)
    growth = after(*[FIRST] * MEASUREMENTS, *[more] * (MEASUREMENTS - 1))
    assert growth.excess is None
    assert growth.after(more, present=False).excess == (FIRST, more)


def test_a_state_that_is_handed_over_for_some_minutes_is_no_growth():
    peak = Use(9 * GB, 100, 0.1)
    assert after(*[FIRST] * MEASUREMENTS, *([*[peak] * (MEASUREMENTS - 1), FIRST] * 3)).excess is None


def test_peaks_of_the_first_minutes_belong_to_what_is_used_at_first():
    peak = Use(6 * GB, 300, 0.2)
    growth = after(peak, *[FIRST] * (MEASUREMENTS - 1))
    assert growth.first == {False: peak}
    assert after(*[Use(8 * GB, 100, 0.1)] * MEASUREMENTS, growth=growth).excess is None


def test_nothing_is_too_much_before_there_were_enough_measurements():
    assert after(*[Use(90 * GB, 9000, 1.0)] * (MEASUREMENTS - 1)).excess is None


def test_with_a_person_present_a_worker_is_compared_with_itself_at_such_times():
    small, large = Use(4 * GB, 100), Use(9 * GB, 100)
    growth = after(*[small] * MEASUREMENTS, present=True)
    growth = after(*[large] * MEASUREMENTS, growth=growth)
    assert growth.excess is None  # the person is gone, and micro-batches are large
    growth = after(*[large] * (MEASUREMENTS - 1), growth=growth, present=True)
    assert growth.excess is None
    assert after(large, growth=growth, present=True).excess == (small, large)
