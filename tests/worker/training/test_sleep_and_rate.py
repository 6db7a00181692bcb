import time

import pytest

from skep.clocks import since_boot
from skep.worker.training.pace import SLEEP_SECONDS, SleepDetector, Throughput


class Hand:
    now = 100.0

    def __call__(self):
        return self.now


def test_time_that_went_on_without_us_is_a_gap_once():
    clock = Hand()
    detector = SleepDetector(clock)
    clock.now += SLEEP_SECONDS
    assert not detector.gap()
    clock.now += 60.0
    assert detector.gap() == 60.0
    assert not detector.gap()


def test_what_may_take_long_is_no_gap():
    clock = Hand()
    detector = SleepDetector(clock)
    clock.now += 20.0
    assert not detector.gap(longest=16.0)
    clock.now += 20.0
    detector.restart()
    assert not detector.gap()


def test_the_clock_goes_on_while_the_computer_sleeps(monkeypatch):
    assert since_boot() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)
    assert SleepDetector()._clock is since_boot
    # macOS has no CLOCK_BOOTTIME, and its CLOCK_MONOTONIC goes on during sleep
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert since_boot() == pytest.approx(time.clock_gettime(time.CLOCK_MONOTONIC), abs=1)
    # Windows has neither
    monkeypatch.delattr(time, "CLOCK_MONOTONIC")
    assert since_boot() == pytest.approx(time.monotonic(), abs=1)


# --- the rate


def test_the_rate_is_that_of_computing_and_naps():
    made = Throughput()
    assert made.rate(1.0) is None
    for _ in range(100):
        made.turn(8, wall=0.1, spent=0.08)
    assert made.rate(1.0) == pytest.approx(80)
    assert made.rate(0.5) == pytest.approx(8 / 0.18)
    assert made.rate(0.2) == pytest.approx(8 / (0.1 + 4 * 0.08))
    assert made.rate(0.0) == 0.0


def test_the_rate_forgets_how_it_was():
    made = Throughput()
    for _ in range(100):
        made.turn(8, wall=0.1, spent=0.1)
    for _ in range(100):
        made.turn(8, wall=0.4, spent=0.4)
    assert made.rate(1.0) == pytest.approx(20, rel=0.1)


def test_computing_that_trains_nothing_lowers_the_rate():
    made = Throughput()
    made.turn(8, wall=0.1, spent=0.1)
    made.turn(0, wall=0.1, spent=0.1)
    assert made.rate(1.0) == pytest.approx(40, rel=0.05)


def test_a_turn_in_which_the_computer_slept_tells_nothing():
    made = Throughput()
    made.turn(8, wall=0.1, spent=0.1)
    made.turn(8, wall=60.0, spent=0.1)
    assert made.rate(1.0) == pytest.approx(80)
