"""A computer that sleeps in the middle of training: front end, worker and p2pd stand still together, and go on together."""

import time
from collections import defaultdict

import pytest

from terminals import JOIN_SECONDS, Running, devote, is_event, skep

pytestmark = pytest.mark.alone

BACK_SECONDS = 240
"""How long a busy computer may take to have a contribution confirmed again, several epochs at most."""
NO_GROUP = "hivemind.averaging.partition.AllreduceException: Averaging step failed"
MARGIN_SECONDS = 3.0
"""Progress is told once a second."""


def is_confirmed(event):
    return event["event"] == "contribution" and event["state"] == "confirmed"


def sleep(processes, seconds):
    """As with the lid closed."""
    for process in processes:
        process.suspend()
    time.sleep(seconds)
    for process in processes:
        process.resume()


def busy_seconds(progress):
    return progress["compute_seconds"] + progress["nap_seconds"]


@pytest.mark.parametrize(
    "seconds", [15, pytest.param(60, marks=pytest.mark.long), pytest.param(600, marks=pytest.mark.long)]
)
@pytest.mark.timeout(1200)
def test_a_computer_that_slept_is_back_in_the_swarm_and_its_ledger_agrees(practice, tmp_path, seconds):
    running = Running(devote(tmp_path / "home"), "join", practice)
    try:
        running.wait_for(is_event("joined"), JOIN_SECONDS)
        running.wait_for(is_confirmed, BACK_SECONDS)
        before, family = running.named("progress")[-1], running.family()
        begun, told = time.monotonic(), len(running.events)
        assert any(process.name() == "p2pd" for process in family)
        sleep(family, seconds)

        known = {event["id"] for event in running.events[:told] if event["event"] == "contribution"}
        back = running.wait_for(
            lambda event: is_confirmed(event) and event["id"] not in known and event["epoch"] > before["epoch"],
            BACK_SECONDS,
        )
        assert back["peers"] >= 1
        after, awake = running.named("progress")[-1], time.monotonic() - begun - seconds
        assert busy_seconds(after) - busy_seconds(before) <= awake + MARGIN_SECONDS  # sleep was neither
        assert not [event for event in running.events if event["event"] == "problem"]
    finally:
        code = running.finish(within=20)
    assert code == 0
    assert_ledger_agrees(running)
    for log in running.home.rglob("*.log*"):
        assert_no_error_of_ours(log.read_text(errors="replace"))


def assert_no_error_of_ours(log):
    """Nothing broke; hivemind itself writes a round that found no group into the log as an exception."""
    for trouble in log.split("Traceback (most recent call last):")[1:]:
        assert NO_GROUP in trouble, trouble


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
