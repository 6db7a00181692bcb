"""What a process holds of memory that it freed, as the system counts it, in a process of its own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other C libraries cannot be asked")

MEBI = 1 << 20
PROGRAM = """
import psutil, torch
from skep.worker.freed import give_back

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
