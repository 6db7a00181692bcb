"""16 bits and recomputing on a CUDA GPU: equal to fp32 within 16-bit precision, with norms in fp32 and less memory."""

import math

import pytest
import torch

from english import in_english
from manifests import raw
from skep.recipes.registry import parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.training import device
from skep.worker.training.trainer import Trainer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

MODEL = {"type": "gpt2", "layers": 4, "heads": 4, "width": 128, "vocabulary": 256}


def make(precision, **changes):
    manifest = parse_manifest(raw(recipe__model=MODEL, recipe__sequence_length=128, precision=precision, **changes))
    try:
        return Trainer(manifest, device.pick("cuda:0", precision))
    except device.DoesNotFit as refused:
        pytest.skip(in_english(refused.title))


def tokens(seed, count=8):
    return text_batch(torch.randint(256, (count, 128), generator=torch.Generator().manual_seed(seed)))


def descend(made, steps=30):
    optimizer = torch.optim.AdamW(made.parameters, lr=3e-3)
    losses = []
    for step in range(steps):
        losses.append(made.add_gradients(tokens(step % 2), 1.0))
        optimizer.step()
        optimizer.zero_grad()
    return losses


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_training_in_16_bits_learns_as_in_32(precision):
    full, half = descend(make("fp32")), descend(make(precision))
    assert full[-1] < 0.9 * full[0]
    assert half == pytest.approx(full, rel=0.05)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_norms_compute_in_fp32_and_so_are_parameters_and_gradients(precision):
    made = make(precision)
    norms, seen = [m for m in made.model.modules() if type(m).__name__.endswith("Norm")], []
    for norm in norms:
        norm.register_forward_hook(lambda _m, _i, out: seen.append(out.dtype))  # append returns None: the output stays
    made.add_gradients(tokens(0), 1.0)
    assert seen == [torch.float32] * len(norms)
    assert {p.dtype for p in made.parameters} == {p.grad.dtype for p in made.parameters} == {torch.float32}


def test_an_overflow_adds_nothing_and_halves_the_scale():
    made = make("fp16")
    made.add_gradients(tokens(0), 1.0)
    before = [p.grad.clone() for p in made.parameters]
    made.loss_scale.factor = 2.0**60
    assert math.isnan(made.add_gradients(tokens(1), 1.0))
    assert made.loss_scale.factor == 2.0**59
    assert all(torch.equal(p.grad, kept) for p, kept in zip(made.parameters, before, strict=True))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_recomputing_takes_less_memory(precision):
    peaks = []
    for checkpointing in ("off", "on"):
        made = make(precision, activation_checkpointing=checkpointing)
        made.add_gradients(tokens(0, 64), 1.0)
        torch.cuda.reset_peak_memory_stats()
        standing = torch.cuda.memory_allocated()
        made.add_gradients(tokens(0, 64), 1.0)
        peaks.append(torch.cuda.max_memory_allocated() - standing)
        del made
    assert peaks[1] < 0.6 * peaks[0]
