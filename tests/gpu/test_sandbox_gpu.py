"""The card computes in the sandbox of the training process."""

import subprocess
import sys

import pytest
import torch

from skep.worker.sandbox.cards import compute_on_cards

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


def test_the_driver_alone_computes():
    compute_on_cards()


def test_torch_computes_in_the_sandbox(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CONFINED.replace("{size}", str(SIZE)), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, total = done.stdout.splitlines()
    assert "a graphics card does not compute with it" not in said
    assert float(total) == SIZE * SIZE * 2 * SIZE, "both factors have a gradient of SIZE in each element"
