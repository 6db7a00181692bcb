"""The memory that a process keeps after freeing it, as the system counts it, measured in a separate process."""

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc can be told to give memory back"
)

MEBI = 1 << 20
PROGRAM = """
import psutil, torch
from skep.worker.process.memory import give_back

def resident():
    return psutil.Process().memory_info().rss

before = resident()
blocks = [torch.ones(16 * 1024) for _ in range(2048)]  # of 64 KiB: too small for a mapping of their own
last = torch.ones(16 * 1024)  # above them, so that their place in the heap is not at its end
taken = resident()
del blocks
freed = resident()
give_back()
print(taken - before, freed - before, resident() - before)
"""


def test_what_is_freed_goes_back_to_the_system_only_when_told_so():
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    taken, freed, given_back = map(int, said.split())
    assert taken > 120 * MEBI
    assert freed > 120 * MEBI
    assert given_back < 20 * MEBI


ARENAS = """
import ctypes, threading
from skep.worker.process.memory import use_one_arena

library = ctypes.CDLL(None)
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
{first}
allocated = threading.Barrier(4)

def allocate():
    library.malloc(4096)
    allocated.wait()  # a thread that ends leaves its arena to the next one

threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.parametrize(("first", "one"), [("", False), ("use_one_arena()", True)], ids=["as it is", "one arena"])
def test_threads_share_one_arena_when_told_so(first, one):
    program = ARENAS.format(first=first)
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (said.count("<heap nr=") == 1) is one


COLLECTING = """
import gc, os
from pathlib import Path
from skep.worker.process.memory import collect_before_forks

{first}

def private():
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty"))

gc.disable()
# Python keeps 2000 unused tuples of each length: here each lies on a page of its own, between tuples that are used
made = [tuple(range(length)) for _ in range(100_000) for length in range(1, 20)]
for length in range(19):
    for number in range(2000):
        made[length + 19 * 50 * number] = None
gc.freeze()
if os.fork() == 0:
    gc.freeze()
    private()  # its own objects
    before = private()
    gc.collect()
    print(private() - before)
else:
    os.wait()
"""


@pytest.mark.parametrize(("first", "copied"), [("", True), ("collect_before_forks()", False)], ids=["as it is", "ours"])
def test_the_first_collection_of_a_fork_copies_pages_unless_one_preceded_the_fork(first, copied):
    program = COLLECTING.format(first=first)
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (int(said) > 1024) is copied  # KiB


FORKS = """
import os
import torch
from skep.worker.process.memory import DroppedInForks

class Trains:
    def __init__(self):
        self.parameter = torch.nn.Parameter(torch.ones(1024))
        self.parameter.grad = torch.ones(1024)
        self.averaged = self.parameter.detach()

    def tensors(self):
        yield self.parameter
        yield self.parameter.grad

trains, gone = Trains(), Trains()
kept = [DroppedInForks(trains.tensors), DroppedInForks(gone.tensors)]
del gone

def sizes():
    return [tensor.numel() for tensor in (trains.parameter, trains.parameter.grad, trains.averaged)]

def forked():
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, str(sizes()).encode())
        os._exit(0)
    os.wait()
    return os.read(read, 100).decode()

print(forked(), sizes())
kept[0].end()
print(forked())
"""


def test_what_is_kept_from_forks_is_empty_there_and_whole_here_and_in_later_ones():
    said = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True).stdout
    assert said == "[0, 0, 1024] [1024, 1024, 1024]\n[1024, 1024, 1024]\n"
