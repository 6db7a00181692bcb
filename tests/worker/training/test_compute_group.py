"""What one device does for a micro-batch, and in which order; several: tests/worker/ranks."""

import math

import pytest
import torch

from manifests import raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.training.compute_group import ComputeGroup
from skep.worker.training.device import CPU, TrainingDevice

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
RECIPE = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=16)).recipe


class Watched(TrainingDevice):
    """Records each synchronisation."""

    def synchronize(self):
        WAITED.append(self.name)


WAITED = []


def group():
    WAITED.clear()
    return ComputeGroup(Watched(CPU, "device 0", "fp32"), open_recipe(RECIPE))


def some_tokens(samples):
    torch.manual_seed(samples)
    return open_recipe(RECIPE).example(samples)


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


@pytest.mark.parametrize("weight", [1.0, math.nan])
def test_there_is_time_for_other_work_after_the_last_gradients_and_before_the_devices_are_waited_for(weight):
    made, seen = group(), []
    made.add_gradients(some_tokens(4), 1.0)
    WAITED.clear()
    before = gradients(made).clone()
    with torch.no_grad():
        made.parameters[0].mul_(weight)
    made.meanwhile = lambda: seen.append((list(WAITED), torch.equal(gradients(made), before)))
    made.add_gradients(some_tokens(4), 1.0)
    assert seen == [([], math.isnan(weight))]
    assert WAITED == ["device 0"]


def test_gradients_are_added_to_the_buffers_that_are_there():
    made = group()
    made.add_gradients(some_tokens(4), 1.0)
    buffers = [p.grad.data_ptr() for p in made.parameters]
    made.add_gradients(some_tokens(4), 1.0)
    assert [p.grad.data_ptr() for p in made.parameters] == buffers


def test_computed_gradients_are_held_until_they_are_added():
    one, other = group(), group()
    one.add_gradients(some_tokens(4), 0.5)
    loss, held = other.compute(some_tokens(4), 8.0)
    assert all(p.grad is None for p in other.parameters)
    held.add(0.5 / 8.0)
    assert torch.allclose(gradients(one), gradients(other), atol=1e-7)
    assert loss == pytest.approx(one.loss(some_tokens(4)))


def test_there_are_no_gradients_of_a_loss_that_is_not_finite():
    made = group()
    with torch.no_grad():
        made.parameters[0].fill_(math.nan)
    loss, held = made.compute(some_tokens(4), 1.0)
    assert math.isnan(loss)
    assert held is None


def test_one_device_loses_nothing_and_has_nothing_to_collect():
    made = group()
    made.begin()
    made.add_gradients(some_tokens(4), 1.0)
    before = gradients(made).clone()
    made.collect()
    made.forget()
    assert torch.equal(gradients(made), before)
    assert made.lost() == 0
    assert [each.name for each in made.devices] == ["device 0"] == [made.name]
