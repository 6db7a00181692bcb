import os
import signal
import subprocess
import sys
import time

import pytest

from skep.clocks import since_boot
from skep.worker.training.pace import SLEEP_SECONDS, SleepDetector, Throughput


class Hand:
    now = 100.0

    def __call__(self):
        return self.now


def test_time_that_went_on_without_us_is_sleep_once():
    clock = Hand()
    detector = SleepDetector(clock)
    clock.now += SLEEP_SECONDS
    assert detector.slept() == 0.0
    clock.now += 60.0
    assert detector.slept() == 60.0
    assert detector.slept() == 60.0


def test_work_of_any_length_is_no_sleep_while_the_thread_that_watches_goes_on():
    clock = Hand()
    detector = SleepDetector(clock, beat=0.001)
    with detector.watching():
        for _ in range(60):
            clock.now += 1.0
            wait_until(lambda: detector._looked == clock.now)
    assert detector.slept() == 0.0


def test_a_sleep_is_noticed_by_whoever_looks_first():
    clock = Hand()
    detector = SleepDetector(clock, beat=0.001)
    with detector.watching():
        clock.now += 60.0
        wait_until(lambda: detector._looked == clock.now)
    assert detector.slept() == 60.0


STOPPED = """
import sys, time
from skep.worker.training.pace import SleepDetector
detector = SleepDetector()
with detector.watching():
    while not detector.slept():
        print("awake", flush=True)
        time.sleep(0.05)
print(detector.slept(), flush=True)
"""


def test_a_process_that_was_stopped_has_slept_although_both_clocks_went_on():
    process = subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "awake\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(SLEEP_SECONDS + 0.5)  # the time of the stop itself
        os.kill(process.pid, signal.SIGCONT)
        told, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert float(told.splitlines()[-1]) > SLEEP_SECONDS


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


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


def test_a_turn_of_any_length_tells_the_rate():
    """On a busy computer the processor time of a long micro-batch is seconds below its wall time."""
    made = Throughput()
    made.turn(8, wall=80.0, spent=40.0)
    assert made.rate(1.0) == pytest.approx(0.1)
