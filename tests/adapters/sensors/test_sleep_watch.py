"""Sleep detected by clocks: simulated clocks, and a real process that is stopped and resumed."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from skep.adapters.sensors.sleep import JUMP_SECONDS, LATE_SECONDS, LOOK_SECONDS, SleepWatch
from skep.clocks import since_boot
from skep.core.session import messages as m

pytestmark = pytest.mark.alone

SOON = 60.0
# prints when it watches, then every event, and runs until its stdin ends
WATCHING = """
import threading, sys
from skep.adapters.sensors.sleep import SleepWatch
watch = SleepWatch(lambda message: print(message.seconds, flush=True), late_seconds=1.0)
watch.read()
threading.Thread(target=lambda: (sys.stdin.read(), watch.close()), daemon=True).start()
print("watching", flush=True)
ended = threading.Event()
while not watch.closed.is_set():
    watch.wait(0.05)
    watch.read()
"""


class Time:
    """A computer's two clocks, and a wait whose duration the test sets."""

    def __init__(self):
        self.awake, self.slept, self.lateness = 50.0, 0.0, 0.0
        self.sleeps_in_wait = 0.0

    def since_boot(self):
        return self.awake + self.slept

    def monotonic(self):
        return self.awake

    def wait(self, seconds):
        self.awake += seconds + self.lateness
        self.slept += self.sleeps_in_wait


@pytest.fixture
def times():
    return Time()


@pytest.fixture
def said():
    return []


@pytest.fixture
def watch(times, said):
    made = SleepWatch(said.append, times.wait, clocks=(times.since_boot, times.monotonic))
    made.read()
    return made


def test_nothing_is_told_while_nothing_happens(watch, said, times):
    times.lateness = LATE_SECONDS / 2  # a busy computer
    for _ in range(10):
        watch.wait(1.0)
        watch.read()
    assert said == []


def test_a_sleep_is_told_once_with_its_length(watch, said, times):
    times.sleeps_in_wait = 3600.0
    watch.wait(1.0)
    times.sleeps_in_wait = 0.0
    watch.read()
    watch.wait(1.0)
    assert said == [m.Slept(3600.0)]


def test_clocks_that_drift_apart_a_little_are_no_sleep(watch, said, times):
    for _ in range(100):
        times.sleeps_in_wait = JUMP_SECONDS / 2
        watch.wait(1.0)
    assert said == []


def test_a_sleep_is_noticed_soon_whatever_wait_was_asked(watch, times):
    before = times.awake
    watch.wait(3600.0)
    assert times.awake - before == LOOK_SECONDS


def test_standing_still_is_told_like_a_sleep(watch, said, times):
    times.lateness = 60.0
    watch.wait(1.0)
    assert said == [m.Slept(60.0)]


def test_a_sleep_that_was_announced_is_told_by_whoever_sees_its_end_first(watch, said, times):
    watch.about_to_sleep()
    times.slept += 600.0
    watch.read()
    watch.awake()  # the system's late notification
    assert said == [m.AboutToSleep(), m.Slept(600.0)]
    watch.about_to_sleep()
    times.slept += 300.0
    watch.awake()
    watch.read()
    assert said[2:] == [m.AboutToSleep(), m.Slept(300.0)]


def test_a_sleep_that_did_not_come_about_is_ended_too(watch, said):
    watch.about_to_sleep()
    watch.awake()
    assert said == [m.AboutToSleep(), m.Slept(0.0)]


def test_the_real_clocks_go_on_together():
    drift = since_boot() - time.monotonic()
    time.sleep(0.05)
    assert abs(since_boot() - time.monotonic() - drift) < JUMP_SECONDS


def test_a_process_that_was_stopped_and_goes_on_says_for_how_long():
    child = subprocess.Popen([sys.executable, "-c", WATCHING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "watching\n"
        child.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + SOON
        while psutil.Process(child.pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        stopped = time.monotonic()
        time.sleep(2.0)
        lasted = time.monotonic() - stopped
        child.send_signal(signal.SIGCONT)
        assert float(child.stdout.readline()) >= lasted - 0.1
    finally:
        child.kill()
        child.communicate()
