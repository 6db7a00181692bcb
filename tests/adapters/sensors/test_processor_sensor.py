"""Other programs' processor use: real processes that compute, start and end, some of them ours."""

import contextlib
import os
import subprocess
import sys
import time

import psutil
import pytest

from skep.adapters.process import own_processes
from skep.adapters.process.own_processes import (
    ANEW_SECONDS,
    FRESH_SECONDS,
    OwnProcesses,
    practice_noted,
    practice_process,
)
from skep.adapters.sensors import memory
from skep.adapters.sensors.processor import (
    SHORTEST_SECONDS,
    Look,
    ProcessorSensor,
    Spent,
    others_use,
    own_seconds,
    spent_by,
    used_seconds,
)
from skep.core.policy.conditions import Condition, Source

pytestmark = pytest.mark.alone

SOON = 60.0
# computes until it has used the requested processor seconds, reports that, and runs until its stdin ends
BUSY = """
import sys, time
for line in sys.stdin:
    while time.process_time() < float(line):
        pass
    print(time.process_time(), flush=True)
"""
# starts BUSY as its child
NESTED = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BUSY!r}])
print(child.pid, flush=True)
child.wait()
"""
# starts BUSY as a grandchild in a new session that loses its parent
ESCAPING = f"""
import subprocess, sys
inner = 'import subprocess, sys; print(subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=2).pid, flush=True)'
subprocess.run([sys.executable, "-c", inner, {BUSY!r}])
sys.stdin.read()
"""


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now

    def go_on(self, seconds=SHORTEST_SECONDS):
        self.now += max(seconds, FRESH_SECONDS)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def run():
    """Starts a program; ends it and its children with the test."""
    started = []

    def start(source, **options):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, "-c", source], **pipes, **options))
        return started[-1]

    yield start
    for process in started:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()


def compute(process, seconds):
    """Let it compute until it has used so many seconds in total."""
    process.stdin.write(f"{seconds}\n")
    process.stdin.flush()
    assert float(process.stdout.readline()) >= seconds


# --- accounting


def test_what_one_of_ours_computes_is_counted_to_the_hundredth(run, clock):
    process = run(BUSY)
    ours = OwnProcesses(lambda: (process.pid,), clock)
    compute(process, 0.1)
    before = {pid: spent_by(found) for pid, found in ours.look().items()}
    compute(process, 0.6)
    after = {pid: spent_by(found) for pid, found in ours.look().items()}
    assert list(after) == [process.pid]
    assert own_seconds(before, after) == pytest.approx(0.5, abs=0.05)


def test_a_real_computing_program_is_seen_and_not_when_it_is_ours(run):
    process = run(BUSY)
    compute(process, 0.05)

    def watch(roots, seconds):
        ours = OwnProcesses(roots)
        before = Look(*used_seconds(), {pid: spent_by(each) for pid, each in ours.look().items()})
        began = spent_by(psutil.Process(process.pid)).own
        compute(process, seconds)
        time.sleep(FRESH_SECONDS)
        after = Look(*used_seconds(), {pid: spent_by(each) for pid, each in ours.look().items()})
        return before, after, spent_by(psutil.Process(process.pid)).own - began

    before, after, its = watch(lambda: (), 1.0)
    seen = others_use(before, after) * (after.total - before.total)
    assert seen >= 0.8 * its  # other programs may add to it
    before, after, its = watch(lambda: (process.pid,), 2.0)
    others = others_use(before, after) * (after.total - before.total)
    assert others == pytest.approx(max(0.0, after.busy - before.busy - its), abs=0.1)


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ({}, {}, 0.0),
        ({1: Spent(5, 0)}, {1: Spent(7, 0)}, 2.0),
        ({1: Spent(5, 0)}, {1: Spent(6, 0), 2: Spent(3, 0)}, 4.0),  # started
        ({1: Spent(5, 0), 2: Spent(3, 0)}, {1: Spent(6, 4)}, 2.0),  # ended: 3 before, 4 in total, and 1 by the parent
        ({1: Spent(5, 0)}, {1: Spent(6, 2)}, 3.0),  # started and ended in between
        ({1: Spent(5, 0), 2: Spent(3, 0)}, {1: Spent(6, 0)}, 1.0),  # ended, and its parent did not wait for it
        ({1: Spent(5, 0), 2: Spent(9, 9)}, {1: Spent(6, 18), 2: Spent(1, 0)}, 2.0),  # its id was reused
    ],
)
def test_time_is_counted_rightly_while_processes_come_and_go(before, after, seconds):
    assert own_seconds(before, after) == pytest.approx(seconds)


def test_a_real_child_that_has_ended_is_not_forgotten(run, clock):
    parent = run(NESTED)
    child = int(parent.stdout.readline())
    ours = OwnProcesses(lambda: (parent.pid,), clock)
    before = {pid: spent_by(each) for pid, each in ours.look().items()}
    assert set(before) == {parent.pid, child}
    compute(parent, 0.6)  # the child reads the shared stdin
    parent.stdin.close()
    while psutil.pid_exists(child):
        time.sleep(0.01)
    clock.go_on()
    living = ours.look()
    assert child not in living
    times = spent_by(psutil.Process(parent.pid)) if parent.poll() is None else None
    if times is not None:  # the parent ends soon after its child
        assert own_seconds(before, {parent.pid: times}) >= 0.5


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        (Look(100, 50, {}), Look(104, 52, {}), 0.5),
        (Look(100, 50, {1: Spent(5, 0)}), Look(104, 52, {1: Spent(6, 0)}), 0.25),
        (Look(100, 50, {1: Spent(5, 0)}), Look(104, 52, {1: Spent(9, 0)}), 0.0),  # never negative
        (Look(100, 50, {}), Look(104, 56, {}), 1.0),
        (Look(100, 50, {}), Look(100, 50, {}), 0.0),
        (Look(100, 50, {}), Look(90, 40, {}), 0.0),  # a counter that was reset
    ],
)
def test_others_use_is_a_share_of_all_cores(before, after, share):
    assert others_use(before, after) == pytest.approx(share)


# --- our processes


def test_a_tree_is_ours_with_all_that_it_starts_later(run, clock):
    ours = OwnProcesses(lambda: (os.getpid(),), clock)
    first = set(ours.look())
    parent = run(NESTED)
    child = int(parent.stdout.readline())
    assert child not in ours.look()  # the list was updated a moment ago
    clock.go_on()
    assert {parent.pid, child} <= set(ours.look()) - first


def test_what_lost_its_parent_is_ours_by_its_session(run, clock):
    root = run(ESCAPING, stderr=subprocess.PIPE, start_new_session=True)
    orphan = int(root.stdout.readline())
    deadline = time.monotonic() + SOON
    try:
        while psutil.Process(root.pid).children():  # its parent is about to end
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert orphan in OwnProcesses(lambda: (root.pid,), clock).look()
        assert orphan not in OwnProcesses(lambda: (), clock).look()
    finally:
        psutil.Process(orphan).kill()


def test_a_root_that_is_known_later_brings_its_tree(run, clock):
    parent = run(NESTED)
    child = int(parent.stdout.readline())
    roots = []
    ours = OwnProcesses(lambda: roots, clock)
    assert ours.look() == {}
    roots.append(parent.pid)
    clock.go_on()
    assert set(ours.look()) == {parent.pid, child}


def test_strangers_are_examined_once(clock, monkeypatch):
    examined = []
    monkeypatch.setattr(own_processes, "_parent", examined.append)
    monkeypatch.setattr(psutil, "pids", lambda: [1, os.getpid()])
    ours = OwnProcesses(lambda: (os.getpid(),), clock)
    ours.look()
    first = len(examined)
    for _ in range(100):
        clock.go_on()
        ours.look()
    assert len(examined) == first
    clock.go_on(ANEW_SECONDS)
    ours.look()
    assert len(examined) == 2 * first


def test_a_process_that_ends_while_it_is_examined_is_nobodys(clock, monkeypatch):
    monkeypatch.setattr(psutil, "pids", lambda: [os.getpid(), 3_999_999])
    assert set(OwnProcesses(lambda: (os.getpid(), 3_999_999), clock).look()) == {os.getpid()}


# --- the sensor


def test_the_sensor_tells_the_mean_since_its_last_look(clock):
    used = iter([(100, 50), (104, 51), (108, 55)])
    sensor = ProcessorSensor(OwnProcesses(lambda: (), clock), lambda: next(used), clock)
    sensor.closed.wait = clock.go_on
    assert sensor.read()[Condition.PROCESSOR_USE].value == pytest.approx(0.25)
    assert sensor.read()[Condition.PROCESSOR_USE].value == pytest.approx(0.25)  # too soon for a new value
    clock.go_on()
    seen = sensor.read()[Condition.PROCESSOR_USE]
    assert (seen.value, seen.source) == (pytest.approx(1.0), Source.ANSWERS)


def test_the_real_sensor_answers_at_once_and_ends_at_once():
    sensor = ProcessorSensor(OwnProcesses())
    assert 0.0 <= sensor.read()[Condition.PROCESSOR_USE].value <= 1.0
    sensor.close()
    sensor.wait(SOON)


def test_no_name_of_another_program_is_ever_read(monkeypatch):
    def refuse(*_):
        raise AssertionError("a name was asked for")

    for method in ("name", "cmdline", "exe", "environ", "username", "open_files", "connections"):
        monkeypatch.setattr(psutil.Process, method, refuse, raising=False)
    ProcessorSensor(OwnProcesses()).read()


def test_memory_is_what_programs_can_get():
    seen = memory.SENSOR().read()[Condition.MEMORY]
    assert 0 < seen.value < psutil.virtual_memory().total


# --- the practice swarm


def test_a_practice_swarm_is_known_while_it_runs(tmp_path):
    assert practice_process(tmp_path) is None
    with practice_noted(tmp_path):
        assert practice_process(tmp_path) == os.getpid()
    assert practice_process(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1, "started": 5.0}', '{"pid": "x", "started": 1}'])
def test_a_note_that_means_nothing_or_a_stranger_is_no_swarm(tmp_path, text):
    (tmp_path / "process.json").write_text(text)
    assert practice_process(tmp_path) is None
