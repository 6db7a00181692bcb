"""Memory and priority on a real GPU; tests/worker/training/test_resource_limits.py uses a simulated device."""

from itertools import chain

import pytest
import torch

from manifests import raw
from skep.recipes.registry import parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.training import device
from skep.worker.training.device_errors import add_gradients
from skep.worker.training.resource_limits import ModelOffload
from skep.worker.training.trainer import Trainer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

GPT2 = {"type": "gpt2", "layers": 4, "heads": 4, "width": 256, "vocabulary": 256}
LENGTH = 256


def make():
    manifest = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=LENGTH, precision="fp32"))
    made = Trainer(manifest, device.pick("cuda:0", "fp32"))
    for parameter in made.parameters:
        parameter.grad = torch.zeros_like(parameter)
    return made


def batch_of(count):
    return text_batch(torch.randint(256, (count, LENGTH), generator=torch.Generator().manual_seed(5)))


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters]).cpu()


@pytest.fixture
def uncapped():
    yield
    torch.cuda.set_per_process_memory_fraction(1.0, 0)


def test_what_is_left_free_is_left_free(uncapped):
    picked = device.pick("cuda:0", "fp32")
    picked.empty_caches()
    free, _ = torch.cuda.mem_get_info(0)
    picked.cap_memory(free - 256 * 2**20)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(512 * 2**20, dtype=torch.uint8, device="cuda:0")
    assert len(torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda:0")) == 64 * 2**20


def test_released_the_gpu_has_its_memory_back_and_training_goes_on_bit_for_bit():
    plain, moved = make(), make()
    offload = ModelOffload(torch.device("cuda", 0), lambda: chain(moved.tensors()))
    for number in range(4):
        plain.add_gradients(batch_of(8), 0.5)
        offload.come_back()
        moved.add_gradients(batch_of(8), 0.5)
        if number == 1:
            held = torch.cuda.memory_allocated(0)
            offload.leave()
            moved.empty_caches()
            assert held - torch.cuda.memory_allocated(0) >= 2 * 4 * sum(p.numel() for p in moved.parameters)
            assert all(tensor.device.type == "cpu" for tensor in moved.tensors())
    assert torch.equal(gradients(plain), gradients(moved))


def test_gradients_are_exact_when_memory_really_runs_out(uncapped):
    plenty, short = make(), make()
    batch = batch_of(256)
    plenty.add_gradients(batch, 1.0)
    plenty.empty_caches()
    picked, sizes = device.pick("cuda:0", "fp32"), []
    free, _ = torch.cuda.mem_get_info(0)
    picked.cap_memory(free - 600 * 2**20)
    add_gradients(short, batch, 1.0, sizes.append)
    assert sizes
    assert torch.allclose(gradients(plenty), gradients(short), atol=1e-5)


def test_training_runs_on_a_stream_of_the_lowest_priority():
    picked = device.pick("cuda:0", "fp32")
    with picked.low_priority():
        stream = torch.cuda.current_stream(0)
        assert stream != torch.cuda.default_stream(0)
        assert stream.priority == 0
    assert torch.cuda.current_stream(0) == torch.cuda.default_stream(0)
