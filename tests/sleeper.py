"""A volunteer whose computer sleeps during training: front end, worker and p2pd are stopped and resumed together."""

import re
import time
from collections import defaultdict
from pathlib import Path

import skep as skep_package
from terminals import GENTLY, JOIN_SECONDS, Running, devote, is_event, name_of, skep

BACK_SECONDS = 240
"""Seconds within which a contribution must be confirmed again on a busy computer: several epochs."""
NO_GROUP = "hivemind.averaging.partition.AllreduceException: Averaging step failed"
SOURCES = Path(skep_package.__file__).parent
OUR_FRAME = re.compile(rf'File "{re.escape(str(SOURCES))}/')
MARGIN_SECONDS = 3.0
"""Progress is reported once a second."""


class Sleeper:
    """After `__init__` it has joined and has a confirmed contribution. `end` may be called more than once."""

    def __init__(self, home, link, epoch_seconds=BACK_SECONDS):
        self.running = Running(devote(home, **GENTLY), "join", link)
        try:
            self.running.wait_for(is_event("joined"), JOIN_SECONDS)
            self.running.wait_for(is_confirmed, epoch_seconds)
        except BaseException:
            self.end()
            raise

    def fall_asleep(self):
        """Stop all processes, as when the lid is closed."""
        self._family = self.running.family()
        self._before, self._told = self.running.named("progress")[-1], len(self.running.events)
        self._begun = time.monotonic()
        assert any(name_of(process) == "p2pd" for process in self._family)
        for process in self._family:
            process.suspend()

    def wake_up(self, seconds):
        """Resume after `seconds` of sleep in total, or immediately if that time has passed."""
        time.sleep(max(0.0, self._begun + seconds - time.monotonic()))
        for process in self._family:
            process.resume()
        self._slept = time.monotonic() - self._begun

    def check_that_it_comes_back(self):
        """A contribution of a later epoch is confirmed; the sleep counts as neither computing nor naps; no problem."""
        known = {event["id"] for event in self.running.events[: self._told] if event["event"] == "contribution"}
        back = self.running.wait_for(
            lambda event: is_confirmed(event) and event["id"] not in known and event["epoch"] > self._before["epoch"],
            BACK_SECONDS,
        )
        assert back["peers"] >= 1
        after, awake = self.running.named("progress")[-1], time.monotonic() - self._begun - self._slept
        assert busy_seconds(after) - busy_seconds(self._before) <= awake + MARGIN_SECONDS
        problems = [event for event in self.running.events if event["event"] == "problem"]
        assert not problems, problems

    def check_what_it_leaves(self):
        """It leaves normally; its ledger agrees with what was reported; the logs contain no error of ours."""
        assert self.running.finish(within=20) == 0
        assert_ledger_agrees(self.running)
        for log in self.running.home.rglob("*.log*"):
            assert_no_error_of_ours(log.read_text(errors="replace"))

    def end(self):
        if self.running.process.poll() is None:
            for process in self.running.family():
                process.resume()
            self.running.finish(within=20)


def is_confirmed(event):
    return event["event"] == "contribution" and event["state"] == "confirmed"


def busy_seconds(progress):
    return progress["compute_seconds"] + progress["nap_seconds"]


def assert_no_error_of_ours(log):
    """No traceback contains our code, except those that hivemind writes for a round without a group.

    Connections and waits that ended during the sleep cause tracebacks of hivemind only.
    """
    for trouble in log.split("Traceback (most recent call last):")[1:]:
        assert NO_GROUP in trouble or not OUR_FRAME.search(trouble), trouble


def assert_ledger_agrees(running):
    by_id = defaultdict(list)
    for event in running.named("contribution"):
        by_id[event["id"]].append(event)
    for events in by_id.values():
        assert [event["state"] for event in events] in (["pending", "confirmed"], ["pending", "lost"]), events
    code, stats = skep(running.home, "stats")
    assert code == 0
    for state in ("confirmed", "lost", "pending"):
        samples = sum(events[-1]["samples"] for events in by_id.values() if events[-1]["state"] == state)
        assert stats["all"][state]["samples"] == samples
