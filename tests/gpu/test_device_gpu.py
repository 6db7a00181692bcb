"""Picking a device on a computer that has a CUDA GPU."""

import pytest
import torch

from english import raises
from skep.adapters.gpu.devices import LocalDevices
from skep.core.device import DeviceKind
from skep.core.errors import DoesNotFit
from skep.worker.training import device

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def test_the_best_device_is_a_gpu_that_computes():
    picked = device.pick("", "auto")
    assert picked.device.type == "cuda"
    assert picked.name == torch.cuda.get_device_name(picked.device)
    assert float(torch.ones(4, device=picked.device).sum()) == 4.0


def test_precision_follows_the_card():
    facts = device.look()
    picked = device.pick("cuda:0", "auto", facts)
    gpu = facts.gpus[0]
    assert picked.precision == ("bf16" if gpu.bf16 else "fp16" if gpu.quick_fp16 else "fp32")
    assert device.pick("cuda:0", "fp32", facts).precision == "fp32"


def test_a_card_beyond_the_last_is_refused():
    beyond = f"cuda:{torch.cuda.device_count()}"
    with raises(DoesNotFit, match=r"there (is|are) only"):
        device.pick(beyond, "auto")


def test_the_engine_and_torch_name_the_same_card():
    listed = [card for card in LocalDevices().list() if card.kind is DeviceKind.NVIDIA and card.unusable is None]
    assert listed[0].name == device.look().gpus[0].name


def test_the_stopwatch_covers_work_that_was_synchronised():
    picked = device.pick("cuda:0", "fp32")
    begun = picked.stopwatch()
    matrix = torch.ones(4096, 4096, device=picked.device)
    for _ in range(20):
        matrix = (matrix @ matrix).clamp(max=1.0)
    picked.synchronize()
    assert picked.stopwatch() > begun
