"""A group of ranks ends when the script destroys it. With torch alone its threads last, and may abort the process."""

import subprocess
import sys

import pytest

PROGRAM = """
{first}
from pathlib import Path

import torch
from torch import distributed as dist


def threads():
    return [(each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1).zero_grad()
assert any("gloo" in name for name in threads())
dist.destroy_process_group()
print(threads())
"""


@pytest.mark.parametrize(
    ("first", "lasts"), [("", True), ("import skep.worker.ranks", False)], ids=["torch alone", "skep"]
)
def test_no_thread_of_a_destroyed_group_lasts(first, lasts):
    program = PROGRAM.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert ("gloo" in done.stdout) is lasts
