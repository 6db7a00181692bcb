"""`skep demo`: Ctrl-C at any moment leaves nothing behind. `make demo` runs the whole demo."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest

from english import in_english
from families import alive
from skep.cli.verbs.demo import GOAL, Report
from skep.cli.verbs.join import Course, Ending
from skep.core.record.contributions import Tally, Totals

DEMO = [sys.executable, "-m", "skep.cli.main", "--json", "demo"]


class Demo:
    def __init__(self):
        # its children have this run's marker in their environment, which `leftovers` needs
        self.process = subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        self.events = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def wait_for(self, condition, within):
        deadline = time.monotonic() + within
        while not condition():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def has(self, name):
        return lambda: any(event["event"] == name for event in list(self.events))

    def family(self):
        parent = psutil.Process(self.process.pid)
        return parent.children(recursive=True)

    def interrupt(self):
        """Send Ctrl-C; returns the seconds until it ended."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self._reader.join()
        return time.monotonic() - begun

    def close(self):
        self.process.stdout.close()
        error = self.process.stderr.read()
        self.process.stderr.close()
        return error


def demo_homes():
    return set(Path(tempfile.gettempdir()).glob("skep-demo-*"))


MOMENTS = {
    "while the practice swarm starts": lambda demo: demo.wait_for(demo_homes, 20),
    "while its peers start": lambda demo: demo.wait_for(lambda: len(demo.family()) > 2, 60),
    "while joining": lambda demo: demo.wait_for(demo.has("stage"), 90),
    "once joined": lambda demo: demo.wait_for(demo.has("progress"), 120),
}


@pytest.mark.alone
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_the_demo_within_three_seconds_and_leaves_nothing(moment):
    demo = Demo()
    MOMENTS[moment](demo)
    family = demo.family()
    took = demo.interrupt()
    assert "Traceback" not in demo.close()
    assert demo.process.returncode == 130
    assert took < 3
    assert not alive(family)
    assert not demo_homes()


def test_a_killed_demo_takes_its_practice_swarm_along():
    demo = Demo()
    demo.wait_for(demo.has("stage"), 90)
    family = demo.family()
    demo.process.kill()
    demo.process.wait()
    deadline = time.monotonic() + 15
    while alive(family) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = alive(family)
    for process in left:
        process.kill()
    demo.close()
    # no process was left to remove them; the next skep in a home removes those that it finds
    for folder in Path(tempfile.gettempdir()).glob("skep-*"):
        shutil.rmtree(folder)
    assert not left


def report(confirmed, losses):
    course = Course(Ending(), 0.0, confirmed=confirmed, losses=losses, peers=1)
    return Report(course, Totals(confirmed=Tally(confirmed, 100)))


def test_the_report_says_what_was_missing():
    assert report(5, (5.0, 4.0)).shortfall(GOAL) is None
    assert "Only 4 epochs were averaged" in in_english(report(4, (5.0, 3.0)).shortfall(GOAL).title)
    assert "held-out loss" in in_english(report(5, (5.0, 4.5)).shortfall(GOAL).title)
    assert "held-out loss" in in_english(report(5, ()).shortfall(GOAL).title)


def test_the_report_shows_the_loss_first_and_last():
    lines = report(5, (5.0, 4.0)).lines()
    assert lines[0].endswith("5.000 → 4.000 (0.80 of the first)")
    assert any("1 other peer" in line for line in lines)
