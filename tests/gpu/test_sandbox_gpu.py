"""The card computes in the sandbox of the training process, and NCCL sums there."""

import subprocess
import sys

import pytest
import torch

from skep.worker.ranks.rendezvous import BOTH
from skep.worker.sandbox.cards import compute_on_cards
from skep.worker.sandbox.confine import BLOCKED

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

SECONDS = 120
SIZE = 512
CONFINED = """
import sys
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own

found = confine(Own(sys.argv[1]), cards=True)
print(found)
import torch
ones = torch.ones({size}, {size}, device="cuda", requires_grad=True)
with torch.autocast("cuda", torch.bfloat16):
    (ones @ ones).sum().backward()
print(float(ones.grad.sum()))
"""
SUMMED = """
import sys
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own

device, backend = sys.argv[2:]
print(confine(Own(sys.argv[1]), cards=device != "cpu"))
import torch
from torch import distributed as dist
from skep.worker.ranks import orders, rendezvous
from skep.worker.ranks.collectives import wait
from skep.worker.training.device import pick

rendezvous.use_for_collectives(pick(device, "fp32"))
rendezvous.meet(orders.Meet(sys.argv[1] + "/meeting", 0, 1, backend, 20.0, device))
for where in ("cpu", device):
    summed = torch.full((1000,), 3.0, device=where)
    wait(dist.all_reduce(summed, async_op=True))
    print(dist.group.WORLD._get_backend(torch.device(where)).name(), float(summed.sum()))
rendezvous.leave()
"""


def test_the_driver_alone_computes():
    compute_on_cards()


def lines(program, *arguments):
    """What the program prints in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_torch_computes_in_the_sandbox(tmp_path):
    said, total = lines(CONFINED.replace("{size}", str(SIZE)), tmp_path)
    assert BLOCKED not in said
    assert float(total) == SIZE * SIZE * 2 * SIZE, "both factors have a gradient of SIZE in each element"


def test_nccl_and_gloo_sum_in_the_sandbox(tmp_path):
    said, *sums = lines(SUMMED, tmp_path, "cuda:0", BOTH)
    assert BLOCKED not in said
    assert sums == ["gloo 3000.0", "nccl 3000.0"]
