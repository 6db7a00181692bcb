"""A volunteer loses p2pd, or its whole worker hangs: skep says so, starts the worker again, and it contributes again."""

import signal

import psutil
import pytest

from english import in_english
from sleeper import BACK_SECONDS, Sleeper, is_confirmed
from terminals import JOIN_SECONDS, count_of

HANG_SECONDS = 90


def p2pd(running):
    return next(process for process in running.family() if process.name() == "p2pd")


def worker(running):
    """It started the DHT's process, which started p2pd."""
    return p2pd(running).parent().parent()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("part", "what", "words"),
    [
        (p2pd, signal.SIGKILL, "p2pd, the program that connects to other peers, ended."),
        pytest.param(worker, signal.SIGSTOP, "The training process did not answer for", marks=pytest.mark.long),
    ],
)
def test_after_the_loss_of_a_part_it_contributes_again(practice, tmp_path, part, what, words):
    volunteer = Sleeper(tmp_path / "home", practice)
    running = volunteer.running
    try:
        before = running.family()
        known, told = ids(running), len(running.events)
        part(running).send_signal(what)
        problem = running.wait_for(lambda event: event["event"] == "problem", HANG_SECONDS)
        assert in_english(problem["title"]).startswith(words)
        running.wait_for(lambda event: event in running.events[told:] and event["event"] == "joined", JOIN_SECONDS)
        running.wait_for(lambda event: is_confirmed(event) and event["id"] not in known, BACK_SECONDS)
        assert count_of(running, "p2pd") == 1
        assert not psutil.wait_procs([each for each in before if each.pid != running.process.pid], 5)[1]
        assert running.finish(within=20) == 0
    finally:
        volunteer.end()


def ids(running):
    return {event["id"] for event in running.named("contribution")}
