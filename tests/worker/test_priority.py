"""Priorities of a process's threads, read from outside: training is the lowest there is, the network is not touched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")

PROCESS = """
import os, subprocess, sys, threading, torch
from skep.worker.priority import lower_training
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
child.kill()
child.wait()
"""


def priority(task):
    """The nice value and the scheduling class; the name in brackets may hold anything."""
    fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
    return int(fields[16]), int(fields[38])


@pytest.fixture
def process():
    made = subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield made
    made.stdin.close()
    made.wait(20)
    made.stdout.close()


def test_only_what_computes_is_lowered(process):
    network, later, child = map(int, process.stdout.readline().split())
    tasks = {int(entry.name) for entry in Path(f"/proc/{process.pid}/task").iterdir()}
    lowered = {task for task in tasks if priority(task)[0] == 19}
    assert process.pid in lowered  # the main thread, which trains
    assert later in lowered  # its children inherit
    assert tasks - lowered == {network}
    assert len(tasks) >= 4  # the library has at least one thread of its own
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (priority(network)[0], priority(child)[0]) == (own, own)
    assert {priority(task)[1] for task in lowered} <= {os.SCHED_BATCH, os.SCHED_IDLE}
