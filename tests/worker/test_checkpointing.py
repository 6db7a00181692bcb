"""Activation checkpointing, counted: what a forward pass keeps for the backward pass, by the bytes autograd saves."""

import contextlib

import pytest
import torch

from manifests import raw
from skep.core.errors import DoesNotFit
from skep.core.manifest import parse
from skep.worker.device import pick
from skep.worker.recipes import RECIPES
from skep.worker.trainer import Trainer

LENGTH = 64
SHAPE = {"layers": 4, "heads": 2, "width": 32, "vocabulary": 256}
TINY = {
    "causal-lm gpt2": {"recipe__name": "causal-lm", "recipe__model": SHAPE | {"type": "gpt2"}},
    "causal-lm llama": {"recipe__name": "causal-lm", "recipe__model": SHAPE | {"type": "llama"}},
}
"""A small model of every kind there is, as changes to the example manifest."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(kind, **changes):
    manifest = parse(raw(**(TINY[kind] | {"recipe__sequence_length": LENGTH, "precision": "fp32"} | changes)))
    return Trainer(manifest, pick("cpu", manifest.precision))


def some_tokens(count=4):
    return torch.randint(256, (count, LENGTH), generator=torch.Generator().manual_seed(0))


class Kept:
    """Bytes that autograd keeps meanwhile; more than `limit` is a lack of memory."""

    def __init__(self, limit=float("inf")):
        self.bytes, self.limit = 0, limit

    def pack(self, tensor):
        self.bytes += tensor.untyped_storage().nbytes() if tensor.grad_fn else 0
        if self.bytes > self.limit:
            raise torch.OutOfMemoryError
        return tensor

    @contextlib.contextmanager
    def counting(self):
        with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor):
            yield


def kept_by(made, count=4):
    kept = Kept()
    with kept.counting():
        made.add_gradients(some_tokens(count), 1.0)
    return kept.bytes


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters if p.grad is not None])


def test_every_recipe_is_tried_here():
    assert {changes["recipe__name"] for changes in TINY.values()} == set(RECIPES), "add a tiny model of the new recipe"


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", TINY)
def test_recomputing_keeps_far_less_and_finds_the_same_gradients(kind, precision):
    plain, saving = (make(kind, precision=precision, activation_checkpointing=each) for each in ("off", "on"))
    assert not plain.checkpointing
    assert saving.checkpointing
    assert kept_by(saving) < 0.4 * kept_by(plain)
    tolerance = 1e-6 if precision == "fp32" else 1e-2
    assert (gradients(plain) - gradients(saving)).norm() <= tolerance * gradients(plain).norm()


def squeezed(made, limit):
    """The trainer, on a computer where autograd may keep `limit` bytes."""
    compute = made.add_gradients

    def add_gradients(tokens, scale):
        with Kept(limit).counting():
            return compute(tokens, scale)

    made.add_gradients = add_gradients
    return made


@pytest.mark.parametrize("kind", TINY)
def test_auto_recomputes_where_one_sample_does_not_fit_and_only_there(kind):
    plain = kept_by(make(kind, activation_checkpointing="off"), count=1)
    roomy = squeezed(make(kind, activation_checkpointing="auto"), plain)
    assert roomy.fit_micro_batch(8) == 1  # less than two samples fit, which is no reason to recompute
    assert not roomy.checkpointing
    tight = squeezed(make(kind, activation_checkpointing="auto"), plain - 1)
    assert tight.fit_micro_batch(8) >= 1
    assert tight.checkpointing


def test_auto_recomputes_before_it_gives_up_and_off_never_does():
    kind = next(iter(TINY))
    plain = kept_by(make(kind, activation_checkpointing="off"), count=1)
    with pytest.raises(DoesNotFit, match="Not even one sample"):
        squeezed(make(kind, activation_checkpointing="off"), plain - 1).fit_micro_batch(8)
    hopeless = squeezed(make(kind, activation_checkpointing="auto"), 0)
    with pytest.raises(DoesNotFit, match="Not even one sample"):
        hopeless.fit_micro_batch(8)
    assert hopeless.checkpointing
