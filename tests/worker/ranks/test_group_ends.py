"""A group of ranks ends with the script, or when that destroys it.

With torch alone its threads last and may abort the process, and a fork that collects it waits for ever or crashes.
"""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
{first}
import time
from contextlib import suppress
from pathlib import Path

import torch
from torch import distributed as dist


def lasting(seconds):
    deadline = time.monotonic() + seconds
    while any("gloo" in name for name in threads()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [name for name in threads() if "gloo" in name]


def threads():
    for each in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            yield (each / "comm").read_text()


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1).zero_grad()
assert lasting(0)
dist.destroy_process_group()
print(lasting({seconds}))
"""


UNFINISHED = """
import threading
import time

import skep.worker.ranks
from skep.worker.ranks.rendezvous import settle_at_exit
import torch
from torch import distributed as dist

begun = threading.Event()


def takes_long(done):
    if threading.current_thread() is threading.main_thread():
        return done.value()[0]  # the sum was there before this was asked for
    begun.set()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        pass
    return done.value()[0]


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
kept = dist.group.WORLD  # as a DistributedDataParallel keeps it
{first}
while not begun.wait(0.1):
    dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future().then(takes_long)
"""

SOON = 20
"""Seconds; a thread that was waited for is listed until the system has removed it."""


FORKED = """
import gc
from multiprocessing import get_context

{first}
import skep.worker.ranks
import torch
from torch import distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
gc.disable()
kept = [dist.group.WORLD]
kept.append(kept)
dist.destroy_process_group()
del kept
child = get_context("fork").Process(target=gc.collect)
child.start()
child.join({seconds})
print(child.exitcode)
child.kill()
"""
"""A fork that collects a group which its parent has left, as Lightning leaves one: its parts refer to each other."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("first", "seconds", "lasts"),
    [("", 1, True), ("import skep.worker.ranks", SOON, False)],
    ids=["torch alone", "skep"],
)
def test_no_thread_of_a_destroyed_group_lasts(first, seconds, lasts):
    program = PROGRAM.format(first=first, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert ("gloo" in done.stdout) is lasts


THREADS_WAIT = sys.version_info >= (3, 14)
"""Python 3.14 lets a thread that wants its lock at the end wait for ever, instead of ending it by force."""
ABORTED = {-signal.SIGABRT, -signal.SIGSEGV}
"""How a process ends that its own thread aborts: which of the two depends on how much of Python is gone by then."""


@pytest.mark.parametrize(
    ("first", "codes"),
    [("", {0} if THREADS_WAIT else ABORTED), ("settle_at_exit()", {0})],
    ids=["torch alone", "skep"],
)
def test_a_script_whose_hook_runs_when_it_ends_does_not_abort(first, codes):
    program = UNFINISHED.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in codes, done.stderr


NEVER_JOINED = {None, -signal.SIGSEGV}
"""How a fork fares that joins a thread it does not have: it waits, or glibc has unmapped that thread's stack already."""


@pytest.mark.parametrize(
    ("first", "seconds", "codes"),
    [("", 5, NEVER_JOINED), ("from skep.worker.process.processes import use_fork; use_fork()", 60, {0})],
    ids=["torch alone", "skep"],
)
def test_a_fork_does_not_wait_for_the_threads_of_a_group_that_it_inherits(first, seconds, codes):
    program = FORKED.format(first=first, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout in {f"{code}\n" for code in codes}, done.stderr
