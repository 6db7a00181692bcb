"""Activation checkpointing, measured by the bytes that autograd saves in a forward pass for the backward pass."""

import contextlib

import pytest
import torch

from english import raises
from manifests import example, images, masked, raw
from recipe_files import lora_recipe
from skep.core.errors import DoesNotFit
from skep.recipes.registry import RECIPES, parse_manifest
from skep.worker.training.device import pick
from skep.worker.training.trainer import Trainer

SHAPE = {"layers": 4, "heads": 2, "width": 32}
LENGTH = 64
KINDS = ["gpt2", "llama", "bert", "albert", "vit", "lora"]


def recipe_in(folder, kind):
    """The recipe of a small model of this kind, and its files."""
    match kind:
        case "gpt2" | "llama":
            return example()["recipe"] | {
                "model": SHAPE | {"type": kind, "vocabulary": 256},
                "sequence_length": LENGTH,
            }, {}
        case "bert" | "albert":
            return masked(kind, **SHAPE) | {"sequence_length": LENGTH}, {}
        case "vit":
            return images(**SHAPE, image_size=32), {}
        case _:
            return lora_recipe(folder)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def make(tmp_path):
    def made(kind, **changes):
        body, files = recipe_in(tmp_path, kind)
        manifest = parse_manifest(raw(**({"recipe": body, "precision": "fp32"} | changes)))
        return Trainer(manifest, pick("cpu", manifest.precision), files)

    return made


def some_samples(made, count=4):
    torch.manual_seed(0)
    return made._recipe.example(count)


class Kept:
    """Counts the bytes that autograd saves; more than `limit` raises an out-of-memory error."""

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
        made.add_gradients(some_samples(made, count), 1.0)
    return kept.bytes


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters if p.grad is not None])


def test_every_recipe_is_tried_here(tmp_path):
    assert {recipe_in(tmp_path, kind)[0]["name"] for kind in KINDS} == set(RECIPES), "add the new recipe"


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", KINDS)
def test_recomputing_keeps_far_less_and_finds_the_same_gradients(make, kind, precision):
    part = 0.7 if kind == "lora" else 0.4  # its base has two layers, and frozen weights keep less from the start
    plain, saving = (make(kind, precision=precision, activation_checkpointing=each) for each in ("off", "on"))
    assert not plain.checkpointing
    assert saving.checkpointing
    assert kept_by(saving) < part * kept_by(plain)
    tolerance = 1e-6 if precision == "fp32" else 1e-2
    assert (gradients(plain) - gradients(saving)).norm() <= tolerance * gradients(plain).norm()


def squeezed(made, limit):
    """The trainer, with at most `limit` bytes for autograd."""
    compute = made.add_gradients

    def add_gradients(batch, scale):
        with Kept(limit).counting():
            return compute(batch, scale)

    made.add_gradients = add_gradients
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_auto_recomputes_where_one_sample_does_not_fit_and_only_there(make, kind):
    plain = kept_by(make(kind, activation_checkpointing="off"), count=1)
    roomy = squeezed(make(kind, activation_checkpointing="auto"), plain)
    assert roomy.dry_run(8).limit == 1  # one sample fits without recomputing, so activations are not recomputed
    assert not roomy.checkpointing
    tight = squeezed(make(kind, activation_checkpointing="auto"), plain - 1)
    assert tight.dry_run(8).limit >= 1
    assert tight.checkpointing


def test_auto_recomputes_before_it_gives_up_and_off_never_does(make):
    kind = KINDS[0]
    plain = kept_by(make(kind, activation_checkpointing="off"), count=1)
    with raises(DoesNotFit, match="Not even one sample"):
        squeezed(make(kind, activation_checkpointing="off"), plain - 1).dry_run(8)
    hopeless = squeezed(make(kind, activation_checkpointing="auto"), 0)
    with raises(DoesNotFit, match="Not even one sample"):
        hopeless.dry_run(8)
    assert hopeless.checkpointing
