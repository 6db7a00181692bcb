"""Priorities of a process's threads and of its session, read from outside: training has the lowest priority, the
network's priority does not change."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skep.worker.process.processes import SESSION_NICE, SessionPriority

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")

PROCESS = """
import os, subprocess, sys, threading, torch
from skep.worker.process.processes import lower_training
torch.set_num_threads(2)
a = torch.ones(600, 600)
a @ a  # starts the library's threads
network = threading.Thread(target=threading.Event().wait, daemon=True)
network.start()
child = subprocess.Popen(["sleep", "60"])
lower_training(19)
later = threading.Thread(target=threading.Event().wait, daemon=True)
later.start()
torch.set_num_threads(3)
a @ a
print(network.native_id, later.native_id, child.pid, flush=True)
sys.stdin.read()
"""


def nice_and_class(task):
    """The nice value and the scheduling class; the name in brackets may contain any characters."""
    fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
    return int(fields[16]), int(fields[38])


@pytest.fixture
def process():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", PROCESS], start_new_session=True, **pipes) as made:
        yield made
        # it has the lowest priority: on a busy computer it takes long to end by itself
        os.killpg(made.pid, signal.SIGKILL)


def test_only_what_computes_is_lowered(process):
    network, later, child = map(int, process.stdout.readline().split())
    tasks = {int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir()}
    lowered = {task for task in tasks if nice_and_class(task)[0] == 19}
    assert process.pid in lowered  # the main thread, which trains
    assert later in lowered  # its children inherit
    assert tasks - lowered == {network}
    assert len(tasks) >= 4  # the library has at least one thread
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (nice_and_class(network)[0], nice_and_class(child)[0]) == (own, own)
    assert {nice_and_class(task)[1] for task in lowered} <= {os.SCHED_BATCH, os.SCHED_IDLE}


STANDING = """
import os, signal, sys
from skep.worker.process import processes
from skep.worker.process.processes import SessionPriority
processes.tie_to_this_process()
processes.fork_into_sessions()
network = os.fork()
if network == 0:
    signal.pause()
print(network, flush=True)
priority = SessionPriority(present=False)
for line in sys.stdin:
    word = line.strip()
    priority.leave() if word == "leave" else priority.begin() if word == "begin" else priority.use(
        present=word == "present"
    )
    print("done", flush=True)
"""
AUTOGROUP = Path("/proc/self/autogroup")
weighed = pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel weighs no sessions")
SOON = 10.0


class Worker:
    """A process in a session led by it or a shell; forks a network process before it lowers training's priority."""

    def __init__(self, *, leads=True):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # a shell runs its last command without a fork, so `exit` follows
        command = [*([] if leads else ["sh", "-c", '"$@"; exit $?', "sh"]), sys.executable, "-c", STANDING]
        self.process = subprocess.Popen(command, **pipes, text=True, bufsize=1, start_new_session=True)
        self.network = int(self.process.stdout.readline())
        deadline = time.monotonic() + SOON
        while os.getsid(self.network) != self.network:  # it creates its session shortly after the fork
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def tell(self, *words):
        for word in words:
            self.process.stdin.write(f"{word}\n")
            assert self.process.stdout.readline() == "done\n"

    def close(self):
        for each in (self.process.stdin, self.process.stdout):
            each.close()
        self.process.wait(SOON)


@pytest.fixture
def make_worker():
    made = []

    def make(**more):
        made.append(Worker(**more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def session_nice(pid):
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])


@weighed
def test_the_session_of_training_stands_back_while_somebody_is_there_and_that_of_the_network_never(make_worker):
    worker = make_worker()
    own = worker.process.pid
    for words, nice in [
        (["present"], 0),  # training has not begun
        (["begin"], SESSION_NICE),  # the earlier order applies
        (["away"], 0),
        (["present"], SESSION_NICE),
        (["leave"], 0),
        (["present"], 0),
    ]:
        worker.tell(*words)
        assert (session_nice(own), session_nice(worker.network)) == (nice, 0), words


@weighed
def test_a_session_in_which_others_are_is_left_as_it_is(make_worker):
    worker = make_worker(leads=False)
    worker.tell("present", "begin")
    assert session_nice(worker.process.pid) == 0


class Autogroup:
    """A session's weight; each attempt to change it fails with the next of `errors`."""

    def __init__(self, *errors):
        self.errors, self.text = list(errors), "/autogroup-1 nice 0\n"

    def write_text(self, nice):
        if self.errors:
            raise self.errors.pop(0)
        self.text = f"/autogroup-1 nice {nice}\n"


def test_a_change_that_comes_too_soon_after_another_is_made_a_little_later():
    made = Autogroup(BlockingIOError(), BlockingIOError())
    priority = SessionPriority(present=True, weight=lambda: made)
    priority.begin()
    assert made.text.endswith(f"nice {SESSION_NICE}\n")
    priority.leave()
    assert made.text.endswith("nice 0\n")


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_system_that_refuses_is_not_asked_again(error):
    made = Autogroup(error())
    priority = SessionPriority(present=True, weight=lambda: made)
    priority.begin()
    priority.use(present=True)
    assert made.text.endswith("nice 0\n")
