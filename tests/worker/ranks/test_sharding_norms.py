"""Batch normalisation in a sharded model: over all samples of the group, running statistics equal on every rank."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

import gloo_ranks
from skep.recipes.contract import OpenRecipe
from skep.recipes.tensors.batches import Batch
from skep.worker.ranks.sharding import ShardedModel

SAMPLES, STEPS = 8, 3


@dataclass(frozen=True)
class Convolutions(OpenRecipe):
    momentum: float | None = 0.1

    def build(self):
        torch.manual_seed(5)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, momentum=self.momentum), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)
        )

    def loss(self, model, batch):
        return nn.functional.cross_entropy(model(batch.inputs.float() / 255), batch.labels)

    def example(self, size):
        pixels = torch.randint(256, (size, 3, 8, 8), dtype=torch.uint8)
        return Batch(pixels, torch.arange(size), torch.randint(4, (size,)))


def batches(recipe):
    torch.manual_seed(2)
    return [recipe.example(SAMPLES) for _ in range(STEPS)]


def train(rank, count, folder, recipe, shares):
    model = ShardedModel(recipe, gloo_ranks.join(rank, count, folder / "store"), "fp32")
    masters = recipe.build() if rank == 0 else None
    stepping = None if masters is None else torch.optim.SGD(masters.parameters(), lr=0.1)
    model.load(masters)
    losses, start = [], sum(shares[:rank])
    for batch in batches(recipe):
        losses.append(model.add_gradients(batch.part(start, shares[rank]), 1.0, SAMPLES))
        model.gather_gradients(masters)
        if stepping is not None:
            stepping.step()
            stepping.zero_grad()
        model.load_trained(masters)
    norm = model._model.get_submodule("1")
    running = [norm.running_mean.tolist(), norm.running_var.tolist(), norm.num_batches_tracked.tolist()]
    if masters is not None:
        own = masters[1]
        assert running == [own.running_mean.tolist(), own.running_var.tolist(), own.num_batches_tracked.tolist()]
    return losses, running, None if masters is None else [p.detach().tolist() for p in masters.parameters()]


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("shares", [[4, 4], [5, 3], [5, 0, 3]])
def test_ranks_normalise_by_the_samples_of_all(shares, momentum):
    recipe = Convolutions(momentum)
    model = recipe.build()
    stepping, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for batch in batches(recipe):
        loss = recipe.loss(model, batch)
        loss.backward()
        losses.append(loss.item())
        stepping.step()
        stepping.zero_grad()

    found = gloo_ranks.run(len(shares), train, recipe, shares)
    assert found[0][0] == pytest.approx(losses, abs=1e-5)
    assert gloo_ranks.difference(model.parameters(), found[0][2]) < 1e-5
    mean, variance, seen = found[0][1]
    assert all(each[1] == found[0][1] for each in found)
    assert mean == pytest.approx(model[1].running_mean.tolist(), abs=1e-6)
    assert variance == pytest.approx(model[1].running_var.tolist(), abs=1e-6)
    assert seen == STEPS
