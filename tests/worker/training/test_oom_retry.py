"""Out of memory at any place in a micro-batch: no gradient is lost or counted twice."""

import math

import pytest
import torch

from english import in_english, raises
from manifests import raw
from skep.core.errors import DeviceError
from skep.recipes.registry import parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.training.device import TrainingDevice, pick
from skep.worker.training.device_errors import (
    TRIES,
    PartialGradients,
    add_gradients,
    as_device_error,
    is_lack_of_memory,
    is_loss_of_device,
)
from skep.worker.training.trainer import Trainer

GPT2 = {"type": "gpt2", "layers": 3, "heads": 2, "width": 16, "vocabulary": 256}
OUT_OF_MEMORY = torch.OutOfMemoryError
SAMPLES = 8


def make(device=None, **changes):
    manifest = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=16, **changes))
    made = Trainer(manifest, device or pick("cpu", manifest.precision))
    for parameter in made.parameters:
        parameter.grad = torch.zeros_like(parameter)
    return made


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return text_batch(torch.randint(256, (SAMPLES, 16)))


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.model.parameters()])


class Shortage:
    """Fails passes of more than `room` samples at the module `where`, forwards or backwards, at most `times`."""

    def __init__(self, made, where, *, backwards, room, times=10**6, error=OUT_OF_MEMORY):
        self.room, self.times, self.error, self.broken = room, times, error, 0
        module = made.model.get_submodule(where)
        if backwards:
            module.register_full_backward_pre_hook(lambda _module, grads: self.look(len(grads[0])))
        else:
            module.register_forward_pre_hook(lambda _module, inputs: self.look(len(inputs[0])))

    def look(self, samples):
        if samples > self.room and self.broken < self.times:
            self.broken += 1
            raise self.error("no more")


@pytest.mark.parametrize("room", [4, 3, 1])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("where", ["lm_head", "transformer.h.2", "transformer.h.1.mlp", "transformer.h.0.attn.c_attn"])
def test_gradients_are_exact_wherever_memory_ran_out(batch, where, backwards, room):
    plenty, short = make(), make()
    loss = plenty.add_gradients(batch, 0.5)
    shortage = Shortage(short, where, backwards=backwards, room=room)
    sizes = []
    assert add_gradients(short, batch, 0.5, sizes.append) == pytest.approx(loss, abs=1e-6)
    assert torch.allclose(gradients(plenty), gradients(short), atol=1e-7)
    assert shortage.broken
    assert sizes[0] == SAMPLES
    assert all(size > room for size in sizes)
    assert len(short.parameters) == len(plenty.parameters)  # all require gradients again


def test_what_had_been_accumulated_before_stays(batch):
    plenty, short = make(), make()
    for made in (plenty, short):
        made.add_gradients(batch, 1.0)
    plenty.add_gradients(batch, 0.25)
    Shortage(short, "transformer.h.1", backwards=True, room=2)
    add_gradients(short, batch, 0.25, lambda _: None)
    assert torch.allclose(gradients(plenty), gradients(short), atol=1e-7)


def test_the_fault_is_real_in_a_plain_retry(batch):
    """Why a plain retry is not enough: the last layers' gradients are counted twice."""
    plenty, short = make(), make()
    plenty.add_gradients(batch, 1.0)
    Shortage(short, "transformer.h.0", backwards=True, room=0, times=1)
    with pytest.raises(OUT_OF_MEMORY):
        short.add_gradients(batch, 1.0)
    short.add_gradients(batch, 1.0)
    assert not torch.allclose(gradients(plenty), gradients(short), atol=1e-3)


@pytest.mark.parametrize(
    "error", [OUT_OF_MEMORY, MemoryError, lambda _: RuntimeError("[enforce fail] not enough memory")]
)
def test_whoever_lacks_memory_it_is_tried_in_halves(batch, error):
    plenty, short = make(), make()
    plenty.add_gradients(batch, 1.0)
    Shortage(short, "transformer.h.1", backwards=False, room=4, error=error)
    add_gradients(short, batch, 1.0, lambda _: None)
    assert torch.allclose(gradients(plenty), gradients(short), atol=1e-7)


def test_one_sample_is_tried_again_and_found_room_for(batch):
    plenty, short = make(), make()
    plenty.add_gradients(batch.part(0, 1), 1.0)
    Shortage(short, "transformer.h.1", backwards=True, room=0, times=2)
    add_gradients(short, batch.part(0, 1), 1.0, lambda _: None)
    assert torch.allclose(gradients(plenty), gradients(short), atol=1e-7)


def test_one_sample_without_room_several_times_is_said_in_words(batch):
    short = make()
    shortage = Shortage(short, "transformer.h.1", backwards=True, room=0)
    with raises(DeviceError, match="The memory of CPU has no room for even one sample now") as caught:
        add_gradients(short, batch, 1.0, lambda _: None)
    assert "tries again later" in in_english(caught.value.hint)
    assert shortage.broken == 3 + TRIES  # with 8, 4 and 2 samples, and several times with one
    assert all(parameter.requires_grad for parameter in short.model.parameters())


def test_another_error_is_no_lack_of_memory(batch):
    short = make()
    Shortage(short, "transformer.h.1", backwards=False, room=0, error=ValueError)
    with pytest.raises(ValueError, match="no more"):
        add_gradients(short, batch, 1.0, lambda _: None)


@pytest.mark.parametrize("second_half_finite", [True, False])
def test_halves_that_cannot_be_finished_spoil_what_was_begun(batch, second_half_finite):
    short = make()
    Shortage(short, "transformer.h.0", backwards=True, room=0, times=1)
    real = short.add_gradients

    def bad(*_):
        return math.nan

    calls = iter([real, bad, real if second_half_finite else bad])  # the whole micro-batch, then its halves

    def attempt(*given):
        return next(calls)(*given)

    short.add_gradients = attempt
    with pytest.raises(PartialGradients):
        add_gradients(short, batch, 1.0, lambda _: None)


def test_a_pass_that_broke_off_after_its_last_gradient_is_complete(batch):
    plenty = make()
    loss = plenty.add_gradients(batch, 1.0)
    synchronize = iter([OUT_OF_MEMORY("late")])

    class Late(TrainingDevice):
        def synchronize(self):
            for error in synchronize:
                raise error

    short = make(Late(torch.device("cpu"), "CPU", "fp32"))
    assert add_gradients(short, batch, 1.0, lambda _: None) == pytest.approx(loss)
    assert torch.equal(gradients(plenty), gradients(short))


def test_fp16_takes_what_overflowed_and_what_ran_out_alike(batch):
    plenty, short = make(precision="fp16"), make(precision="fp16")
    plenty.add_gradients(batch, 1.0)
    Shortage(short, "transformer.h.1", backwards=True, room=4)
    add_gradients(short, batch, 1.0, lambda _: None)
    assert torch.allclose(gradients(plenty), gradients(short), atol=2e-3)


# --- messages

GONE = [
    RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA error: uncorrectable ECC error encountered"),
    RuntimeError("HIP error: no ROCm-capable device is detected"),
    torch.AcceleratorError("CUDA error: the launch timed out and was terminated"),
]


@pytest.mark.parametrize("error", GONE)
def test_a_gpu_that_is_gone_is_said_in_words(error):
    assert is_loss_of_device(error)
    with raises(DeviceError, match="Big card stopped working"), as_device_error("Big card"):
        raise error


@pytest.mark.parametrize("error", [OUT_OF_MEMORY(), MemoryError(), RuntimeError("CUDA error: out of memory")])
def test_a_lack_of_memory_anywhere_is_said_in_words(error):
    assert is_lack_of_memory(error)
    assert not is_loss_of_device(error)
    with raises(DeviceError, match="The memory of Big card has no room"), as_device_error("Big card"):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), FileNotFoundError("gone"), ValueError("no")])
def test_other_errors_are_left_as_they_are(error):
    assert not is_loss_of_device(error)
    with pytest.raises(type(error)), as_device_error("Big card"):
        raise error
