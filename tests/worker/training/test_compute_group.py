"""Several devices compute the same as one; here all are the processor, with different names."""

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


def group(count, precision="fp32"):
    WAITED.clear()
    return ComputeGroup([Watched(CPU, f"device {n}", precision) for n in range(count)], open_recipe(RECIPE))


def some_tokens(samples):
    torch.manual_seed(samples)
    return open_recipe(RECIPE).example(samples)


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("count", "samples"), [(2, 8), (2, 5), (3, 8)])
def test_several_devices_give_the_loss_and_the_gradients_of_one(precision, count, samples):
    one, several = group(1, precision), group(count, precision)
    batch = some_tokens(samples)
    for scale in (0.5, 0.25):  # the second is added to the first
        alone, together = one.add_gradients(batch, scale), several.add_gradients(batch, scale)
        assert together == pytest.approx(alone, rel=1e-3)
    bound = 1e-5 if precision == "fp32" else 2e-2
    assert (gradients(one) - gradients(several)).norm() < bound * gradients(one).norm()
    assert set(WAITED) == {f"device {n}" for n in range(count)}


@pytest.mark.parametrize("weight", [1.0, math.nan])
def test_there_is_time_for_other_work_after_the_last_gradients_and_before_the_devices_are_waited_for(weight):
    made, seen = group(1), []
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
    several = group(2)
    several.add_gradients(some_tokens(4), 1.0)
    buffers = [p.grad.data_ptr() for p in several.parameters]
    several.add_gradients(some_tokens(4), 1.0)
    assert [p.grad.data_ptr() for p in several.parameters] == buffers


def test_every_device_computes_with_the_parameters_of_now():
    one, several = group(1), group(2)
    for made in (one, several):
        made.add_gradients(some_tokens(4), 1.0)
        torch.optim.SGD(made.parameters, lr=0.5).step()
        for parameter in made.parameters:
            parameter.grad = None
        made.add_gradients(some_tokens(8), 1.0)
    assert torch.allclose(gradients(one), gradients(several), atol=1e-5)


def test_fewer_samples_than_devices_leave_some_of_them_idle():
    one, several = group(1), group(3)
    one.add_gradients(some_tokens(1), 1.0)
    WAITED.clear()
    several.add_gradients(some_tokens(1), 1.0)
    assert WAITED == ["device 0"]
    assert torch.equal(gradients(one), gradients(several))


def test_an_overflow_on_one_device_adds_nothing():
    several = group(2, "fp16")
    several.add_gradients(some_tokens(4), 1.0)
    before, several.loss_scale.factor = gradients(several).clone(), 2.0**40
    assert several.add_gradients(some_tokens(4), 1.0) != several.add_gradients(some_tokens(4), 1.0)  # both NaN
    assert torch.equal(gradients(several), before)


def test_what_a_group_holds_is_counted_on_every_device():
    assert len(list(group(3).tensors())) == 3 * len(list(group(1).tensors()))
    assert group(2).name == "device 0, device 1"
