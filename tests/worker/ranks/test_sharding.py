"""A model that is sharded over ranks learns as it would in one piece."""

import math

import pytest
import torch
from torch import nn

import gloo_ranks
from manifests import images, masked, raw
from recipe_files import lora_recipe
from skep.recipes.contract import OpenRecipe
from skep.recipes.registry import open_recipe, parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.ranks.sharding import ShardedModel

GPT2 = {"type": "gpt2", "layers": 3, "heads": 2, "width": 32, "vocabulary": 256}
LLAMA = {"type": "llama", "layers": 3, "heads": 2, "width": 32, "vocabulary": 256}
STEPS = 4


def text(shape):
    return parse_manifest(raw(recipe__model=shape, recipe__sequence_length=16)).recipe


def other(recipe):
    return parse_manifest(raw(recipe=recipe)).recipe


def optimizer(masters):
    trained = [each for each in masters.parameters() if each.requires_grad]
    return torch.optim.AdamW(trained, **gloo_ranks.ADAM, weight_decay=0.1)


def batches(recipe, count=STEPS, samples=8):
    torch.manual_seed(1)
    return [recipe.example(samples) for _ in range(count)]


def whole(recipe, steps=STEPS, scales=(1.0,)):
    """Losses and parameters of training in one piece."""
    model = recipe.build().train()
    stepping, losses = optimizer(model), []
    for batch in batches(recipe, steps):
        for scale in scales:
            loss = recipe.loss(model, batch)
            (loss * scale).backward()
        losses.append(loss.item())
        stepping.step()
        stepping.zero_grad()
    return losses, [p.detach() for p in model.parameters()]


def train(rank, count, folder, recipe, options):
    """The same by `count` ranks, with rank 0's masters; `shares` are the samples of each rank."""
    shares, scales = options.pop("shares", [8 // count] * count), options.pop("scales", (1.0,))
    mesh = gloo_ranks.join(rank, count, folder / "store")
    model = ShardedModel(recipe, mesh, options.pop("precision", "fp32"), **options)
    masters = recipe.build().train() if rank == 0 else None
    model.load(masters)
    stepping = None if masters is None else optimizer(masters)
    losses, start = [], sum(shares[:rank])
    for batch in batches(recipe):
        for scale in scales:
            loss = model.add_gradients(batch.part(start, shares[rank]), scale, len(batch))
        losses.append(loss)
        model.gather_gradients(masters)
        if stepping is not None:
            stepping.step()
            stepping.zero_grad()
        model.load_trained(masters)
    return losses, None if masters is None else [p.detach().tolist() for p in masters.parameters()]


def flat(tensors):
    return torch.cat([each.detach().flatten() for each in tensors])


def compared(count, recipe, **options):
    opened = recipe if hasattr(recipe, "build") else open_recipe(recipe)
    losses, parameters = whole(opened, scales=options.get("scales", (1.0,)))
    found = gloo_ranks.run(count, train, opened, options)
    assert all(each[0] == found[0][0] for each in found)  # every rank knows the loss of all samples
    assert found[0][0] == pytest.approx(losses, abs=1e-5)
    assert gloo_ranks.difference(parameters, found[0][1]) < 1e-5
    return parameters


def test_four_ranks_learn_as_one_model():
    compared(4, text(GPT2))


def test_two_ranks_with_unequal_parts_and_recomputed_activations_learn_as_one_model():
    compared(2, text(LLAMA), shares=[5, 3], recompute=True)


def test_gradients_of_several_micro_batches_are_added():
    compared(2, text(GPT2), scales=(0.75, 0.5))


def test_a_rank_without_samples_changes_nothing():
    compared(3, text(GPT2), shares=[5, 0, 3])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_in_16_bits_it_learns_within_their_error(precision):
    recipe, scales = open_recipe(text(GPT2)), (0.75, 0.5)
    losses, learned = whole(recipe, scales=scales)
    found = gloo_ranks.run(4, train, recipe, {"precision": precision, "scales": scales})[0]
    assert found[0] == pytest.approx(losses, abs=1e-3)
    first = flat(recipe.build().parameters())
    wanted, moved = flat(learned) - first, flat(map(torch.tensor, found[1])) - first
    assert float((moved - wanted).norm() / wanted.norm()) < 0.05


def test_shards_in_the_hosts_memory_give_the_same():
    compared(2, text(GPT2), offload=True)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "recipe", [masked("bert"), masked("albert", layers=3), images()], ids=lambda r: r["model"]["type"]
)
def test_every_family_of_models_can_be_sharded(recipe, recompute):
    compared(2, other(recipe), recompute=recompute)


@pytest.mark.parametrize("tied", [True, False])
def test_adapters_learn_beside_a_sharded_base_that_stays_as_it_is(tmp_path, tied):
    recipe, files = lora_recipe(tmp_path, tied_embeddings=tied)
    compared(2, open_recipe(other(recipe), files))


class Odd(OpenRecipe):
    """Words to words by a tied head, a frozen layer, one that is never used, and more ranks than rows of a bias."""

    def build(self):
        torch.manual_seed(4)
        model = nn.ModuleDict(
            {
                "words": nn.Embedding(9, 6),
                "frozen": nn.Linear(6, 6).requires_grad_(requires_grad=False),
                "unused": nn.Linear(6, 6),
                "scale": nn.Linear(6, 1),
                "head": nn.Linear(6, 9, bias=False),
            }
        )
        model["head"].weight = model["words"].weight
        return Whole(model)

    def loss(self, model, batch):
        logits = model(batch.inputs)
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch.inputs[:, 1:].flatten())

    def example(self, size):
        return text_batch(torch.randint(9, (size, 5)))


class Whole(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, words):
        hidden = torch.tanh(self.parts["frozen"](self.parts["words"](words)))
        return self.parts["head"](hidden * self.parts["scale"](hidden))


def test_frozen_unused_and_tied_parameters_and_tensors_with_fewer_rows_than_ranks():
    before = Odd().build()
    after = compared(3, Odd(), shares=[3, 3, 2])
    for (name, old), new in zip(before.named_parameters(), after, strict=True):
        changed = not torch.equal(old, new)
        assert changed == (not name.startswith(("parts.frozen", "parts.unused"))), name


def with_a_bad_one_between(rank, count, folder):
    """Losses of three micro-batches, the second with broken parameters, and the gradients of all as norms."""
    recipe = Odd()
    model = ShardedModel(recipe, gloo_ranks.join(rank, count, folder / "store"), "fp32")
    masters, broken = (recipe.build(), recipe.build()) if rank == 0 else (None, None)
    if broken is not None:
        nn.init.constant_(broken.parts["scale"].weight, math.inf)
    losses = []
    for batch, held in zip(batches(recipe, 3, 4), (masters, broken, masters), strict=True):
        model.load(held)
        losses.append(model.add_gradients(batch.part(2 * rank, 2), 1.0, 4))
    model.gather_gradients(masters)
    return losses, None if masters is None else [p.grad is not None and p.grad.tolist() for p in masters.parameters()]


def test_a_micro_batch_whose_loss_is_not_finite_adds_nothing_on_any_rank():
    recipe, model = Odd(), Odd().build()
    first, _, last = batches(recipe, 3, 4)
    for batch in (first, last):
        recipe.loss(model, batch).backward()
    found = gloo_ranks.run(2, with_a_bad_one_between)
    assert [math.isfinite(loss) for loss in found[0][0]] == [True, False, True]
    expected, given = [p.grad for p in model.parameters()], found[0][1]
    assert [each is not None for each in expected] == [each is not False for each in given]
    used = [(a, b) for a, b in zip(expected, given, strict=True) if a is not None]
    assert gloo_ranks.difference(*zip(*used, strict=True)) < 1e-6


def overflow(rank, count, folder):
    """Losses of three micro-batches in fp16, the second with too large a scale in rank 1, the scales, the gradients."""
    recipe = open_recipe(text(GPT2))
    model = ShardedModel(recipe, gloo_ranks.join(rank, count, folder / "store"), "fp16")
    masters = recipe.build() if rank == 0 else None
    model.load(masters)
    losses, scales = [], []
    for number, batch in enumerate(batches(recipe, 3, 4)):
        if number == rank == 1:
            model.loss_scale.factor = 2.0**40
        losses.append(model.add_gradients(batch.part(2 * rank, 2), 1.0, 4))
        scales.append(model.loss_scale.factor)
        model.loss_scale.factor = 2.0**10
    model.gather_gradients(masters)
    return losses, scales, None if masters is None else [p.grad.tolist() for p in masters.parameters()]


def test_gradients_that_overflow_in_fp16_in_one_rank_are_added_on_none():
    recipe = open_recipe(text(GPT2))
    model = recipe.build()
    first, _, last = batches(recipe, 3, 4)
    for batch in (first, last):
        recipe.loss(model, batch).backward()
    found = gloo_ranks.run(2, overflow)
    for (losses, scales, _), halved in zip(found, (2.0**9, 2.0**39), strict=True):
        assert [math.isfinite(loss) for loss in losses] == [True, False, True]
        assert scales == [2.0**16, halved, 2.0**10]
    gradients = [p.grad for p in model.parameters()]
    assert gloo_ranks.difference(gradients, found[0][2]) < 2e-2 * max(float(each.abs().max()) for each in gradients)
