"""Practice in one terminal, join in another, commands from a third: real processes, real peers, real averaging.

One practice swarm serves all tests of this file; each test joins it with its own home.
"""

import signal
import time
from collections import defaultdict

import pytest

from families import alive
from terminals import GENTLY, JOIN_SECONDS, SHORT_EPOCHS, Running, devote, is_event, practice_swarm, skep, wait_until

EPOCHS_SECONDS = 240


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    with practice_swarm(tmp_path_factory.mktemp("practice"), SHORT_EPOCHS) as link:
        yield link


@pytest.fixture
def join(practice, tmp_path):
    started = []

    def start(*arguments, settings=GENTLY):
        started.append(Running(devote(tmp_path / "home", **settings), "join", practice, *arguments))
        return started[-1]

    yield start
    for running in started:
        running.finish()


def test_five_epochs_with_two_other_peers_and_a_ledger_that_agrees(join):
    running = join()
    running.wait_for(is_event("progress"), JOIN_SECONDS)
    stages = [event["name"] for event in running.named("stage")]
    assert list(dict.fromkeys(stages)) == ["hardware", "data", "peers", "warm-up", "state"]

    wait_until(lambda: five_epochs_with_both_others(running), EPOCHS_SECONDS)
    leaving = Running(running.home, "leave")
    left = running.wait_for(is_event("left"), 65)
    assert running.end() == leaving.end() == 0
    last = settled_contributions(running)
    assert len(last) >= 5

    code, stats = skep(running.home, "stats")
    assert code == 0
    for state in ("confirmed", "lost", "pending"):
        samples = sum(event["samples"] for event in last if event["state"] == state)
        assert stats["all"][state]["samples"] == samples
        assert left["totals"][state]["samples"] == samples

    evaluations = [event["loss"] for event in running.named("evaluation")]
    assert evaluations[-1] < evaluations[0]

    short = join("--epochs", "1")
    short.wait_for(is_event("left"), EPOCHS_SECONDS)
    assert short.end() == 0
    assert settled_contributions(short)


@pytest.mark.parametrize(
    ("percent", "computed"),
    [(50, 5), *(pytest.param(percent, 20, marks=pytest.mark.long) for percent in (25, 50, 75))],
)
def test_pause_resume_and_share_from_a_third_terminal_act_within_a_second_and_the_share_holds(join, percent, computed):
    share = percent / 100
    running = join(settings={})
    running.wait_for(is_event("progress"), JOIN_SECONDS)
    home = running.home
    worker = next(p for p in running.family()[1:] if "skep.worker.main" in " ".join(p.cmdline()))
    assert skep(home, "pause")[0] == 0
    running.wait_for(lambda e: e["event"] == "paused" and e["share"] == 0, 1)
    assert skep(home, "status")[1]["phase"] == "paused"
    before = main_thread_seconds(worker)
    time.sleep(1.0)
    assert main_thread_seconds(worker) - before < 0.3  # the worker computes nothing, although the swarm continues

    assert skep(home, "resume")[0] == 0
    running.wait_for(lambda e: e["event"] == "progress" and e["share_asked"] == 1.0 and e["samples_per_second"] > 0, 30)

    assert skep(home, "share", str(percent))[0] == 0
    assert skep(home, "status")[1]["allowance"]["share"] == share
    # the worker reports it after the current round
    running.wait_for(lambda e: e["event"] == "progress" and e["share_asked"] == share, 30)
    assert measure_share(running, worker, computed) == pytest.approx(share, abs=0.03)


def five_epochs_with_both_others(running):
    """Whether so many have ended, and four of them with both others, however many rounds a busy computer misses."""
    settled = [event for event in running.named("contribution") if event["state"] != "pending"]
    confirmed = [event for event in settled if event["state"] == "confirmed"]
    whole = [event for event in confirmed if event["peers"] >= 2]
    return len(settled) >= 5 and len(whole) >= 4 and max(event["epoch"] for event in confirmed) >= 4


def settled_contributions(running):
    """The final state of each contribution, which was pending and then settled once."""
    by_id = defaultdict(list)
    for event in running.named("contribution"):
        by_id[event["id"]].append(event)
    for events in by_id.values():
        assert events[0]["state"] == "pending"
        assert [event["state"] for event in events[1:]] in (["confirmed"], ["lost"])
    return [events[-1] for events in by_id.values()]


def main_thread_seconds(process):
    """Processor time of the training thread, measured by the system."""
    main = next(thread for thread in process.threads() if thread.id == process.pid)
    return main.user_time + main.system_time


def measure_share(running, worker, computed):
    """The training thread's share: its processor time compared with the reported naps, over `computed` seconds."""
    processor_before, naps_before = read_while_paused(running, worker)
    assert skep(running.home, "resume")[0] == 0
    wait_until(lambda: main_thread_seconds(worker) - processor_before >= computed, 240)
    processor, naps = read_while_paused(running, worker)
    processor -= processor_before
    return processor / (processor + naps - naps_before)


def read_while_paused(running, worker):
    """Seconds of computing and of naps. Neither grows during a pause, so a late report has the same values."""
    assert skep(running.home, "pause")[0] == 0
    reports = len(running.named("progress"))

    def standing():
        new = running.named("progress")[reports:]
        return len(new) > 1 and new[-1]["share_asked"] == 0 and new[-1]["nap_seconds"] == new[-2]["nap_seconds"]

    wait_until(standing, 60)
    return main_thread_seconds(worker), running.named("progress")[-1]["nap_seconds"]


def test_a_killed_worker_leaves_nothing_and_is_started_again(join):
    running = join()
    running.wait_for(is_event("progress"), JOIN_SECONDS)
    running.wait_for(lambda e: e["event"] == "progress" and e["samples_accumulated"] > 0, 60)
    family = running.family()
    worker = next(p for p in family[1:] if "skep.worker.main" in " ".join(p.cmdline()))
    worker.kill()
    wait_until(lambda: not alive(family[1:]), 5)
    running.wait_for(is_event("problem"), 5)
    wait_until(lambda: len(running.named("joined")) == 2, JOIN_SECONDS)
    leave_after_the_round(running)
    code, stats = skep(running.home, "stats")
    assert code == 0
    assert stats["all"]["pending"]["samples"] == 0


def leave_after_the_round(running):
    """Leave when samples were counted: skep waits for their round and shows a countdown."""
    joined = len(running.named("progress"))
    wait_until(lambda: any(e["samples_per_second"] > 0 for e in running.named("progress")[joined:]), JOIN_SECONDS)
    last = running.named("progress")[-1]["epoch"]  # the round may end while the command starts
    leaving = Running(running.home, "leave")
    until = running.wait_for(is_event("leaving"), 60)["until"]
    code, status = skep(running.home, "status")
    if code == 0 and status["phase"] != "idle":  # otherwise the round has already ended
        assert (status["phase"], status["leaving_until"]) == ("leaving", until)
    running.wait_for(is_event("left"), 65)
    assert running.end() == leaving.end() == 0
    settled = [e for e in running.named("contribution") if e["epoch"] >= last and e["state"] != "pending"]
    assert settled
    # a round may fail on a busy computer, but skep waited for it
    assert "left before the round" not in {event["reason"] for event in settled}


def test_a_killed_front_end_takes_its_worker_along_and_the_ledger_opens(join):
    running = join()
    running.wait_for(lambda e: e["event"] == "progress" and e["samples_per_second"] > 0, JOIN_SECONDS)
    family = running.family()
    running.finish(signal.SIGKILL)
    wait_until(lambda: not alive(family), 5)
    code, stats = skep(running.home, "stats")
    assert code == 0
    before = stats["all"]
    assert before["confirmed"]["samples"] + before["pending"]["samples"] > 0

    again = join()  # removes what the killed front end left, and settles its pending contributions
    again.wait_for(is_event("stage"), 30)
    assert skep(again.home, "leave", "--now") == (0, {"left": True})
    assert again.end() == 0
    assert not again.named("leaving")
    _, stats = skep(running.home, "stats")
    assert stats["all"]["pending"]["samples"] == 0
    assert stats["all"]["lost"]["samples"] == before["lost"]["samples"] + before["pending"]["samples"]


@pytest.mark.alone
def test_ctrl_c_leaves_within_three_seconds_and_loses_nothing_silently(join):
    running = join()
    running.wait_for(lambda e: e["event"] == "progress" and e["samples_accumulated"] > 0, JOIN_SECONDS)
    family = running.family()
    leaving = Running(running.home, "leave")
    running.wait_for(is_event("leaving"), 60)
    begun = time.monotonic()
    assert running.finish() == 0  # although it waits for a round
    assert time.monotonic() - begun < 3
    assert not alive(family)
    assert running.named("left")
    assert leaving.end() == 0
