"""The optimizer's checks: when it steps, with which gradients, and what it reports."""

from dataclasses import replace

import pytest
import torch

from english import in_english, spoken
from skep.core.project.manifest import OptimizerSpec
from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.core.text import verbatim
from skep.worker.swarm.global_rounds import failure_words
from skep.worker.swarm.optimizers import guarded, optimizer_factory
from skep.worker.swarm.rounds import RoundFacts, Rounds

SPEC = OptimizerSpec(name="adamw", learning_rate=0.1, betas=(0.9, 0.95), weight_decay=0.0, clip_norm=1.0)
GOOD = RoundFacts(group_size=2, heard=("a",), missing=(), complete=True)


@pytest.fixture
def told():
    return []


@pytest.fixture
def rounds(told):
    return Rounds("s", told.append)


def opened(rounds, epoch, samples):
    rounds.grow(epoch, samples)
    return rounds.open(epoch)


def parameter_with_gradient(values):
    parameter = torch.nn.Parameter(torch.zeros(len(values)))
    parameter.grad = torch.tensor(values)
    return parameter


def test_a_step_on_a_good_round_moves_the_parameters_and_confirms(rounds, told):
    parameter = parameter_with_gradient([1.0, -1.0])
    opened(rounds, 0, 8).settle(GOOD)
    optimizer_factory(SPEC, rounds)([parameter]).step()
    assert torch.allclose(parameter, torch.tensor([-0.1, 0.1]))
    assert isinstance(told[-1], ContributionConfirmed)


def test_stock_adam_moves_on_its_momentum_after_a_failed_round_and_ours_stays(rounds):
    stock, own = parameter_with_gradient([1.0]), parameter_with_gradient([1.0])
    plain = torch.optim.AdamW([stock], lr=0.1, weight_decay=0.0)
    ours = optimizer_factory(SPEC, rounds)([own])
    plain.step()
    opened(rounds, 0, 8).settle(GOOD)
    ours.step()
    stock_before, own_before = stock.clone(), own.clone()
    stock.grad.zero_()  # what hivemind passes to the optimizer after a failed round
    own.grad.zero_()
    plain.step()
    opened(rounds, 1, 8).fail(verbatim("the round failed"))
    ours.step()
    assert not torch.equal(stock, stock_before)
    assert torch.equal(own, own_before)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_gradients_that_are_not_finite_never_reach_the_parameters(rounds, told, poison):
    parameter = parameter_with_gradient([1.0, poison])
    opened(rounds, 0, 8).settle(GOOD)
    optimizer_factory(SPEC, rounds)([parameter]).step()
    assert torch.equal(parameter.detach(), torch.zeros(2))
    assert spoken(told[-1]) == ContributionLost(
        "s-0000", 0, 8, verbatim("the averaged gradients were not finite or far too large"), 1
    )


@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_gradients_that_are_far_too_large_never_reach_the_parameters(rounds, told, clip_norm):
    parameter = parameter_with_gradient([1.0, 1e10])
    opened(rounds, 0, 8).settle(GOOD)
    optimizer_factory(replace(SPEC, clip_norm=clip_norm), rounds)([parameter]).step()
    assert torch.equal(parameter.detach(), torch.zeros(2))
    assert isinstance(told[-1], ContributionLost)


def spoil(optimizer, parameter):
    """A second moment that cannot be: the step divides by its root."""
    optimizer.state[parameter]["exp_avg_sq"].fill_(-1.0)
    return [parameter.detach().clone(), *(value.clone() for value in optimizer.state[parameter].values())]


def test_stock_adam_steps_to_values_that_are_not_finite():
    parameter = parameter_with_gradient([1.0])
    plain = torch.optim.AdamW([parameter], lr=0.1)
    plain.step()
    spoil(plain, parameter)
    plain.step()
    assert not torch.isfinite(parameter).any()


def test_a_step_to_values_that_are_not_finite_is_undone_for_that_tensor(rounds, told):
    bad, good = parameter_with_gradient([1.0]), parameter_with_gradient([1.0])
    optimizer = optimizer_factory(SPEC, rounds)([{"params": [bad]}, {"params": [good]}])
    optimizer.step()  # the virtual first step
    before = spoil(optimizer, bad)
    opened(rounds, 0, 8).settle(GOOD)
    optimizer.step()
    assert all(map(torch.equal, [bad, *optimizer.state[bad].values()], before))
    assert good.item() < 0
    assert spoken(told[-1]) == ContributionLost("s-0000", 0, 8, verbatim("the optimizer's step was not finite"), 1)


def test_gradients_are_clipped_once_to_the_norm_of_the_manifest(rounds):
    parameter = parameter_with_gradient([30.0, 40.0])
    opened(rounds, 0, 8).settle(GOOD)
    optimizer_factory(SPEC, rounds)([parameter]).step()
    assert torch.allclose(parameter.grad, torch.tensor([0.6, 0.8]), atol=1e-5)


def test_hiveminds_virtual_first_step_is_no_round(rounds, told):
    parameter = parameter_with_gradient([0.0])
    optimizer = optimizer_factory(SPEC, rounds)([parameter])
    optimizer.step()
    assert told == []
    assert optimizer.state[parameter]


def test_a_step_that_belongs_to_no_round_changes_nothing(rounds):
    parameter = parameter_with_gradient([1.0])
    optimizer = optimizer_factory(SPEC, rounds)([parameter])
    optimizer.step()  # the virtual first step
    before = parameter.clone()
    optimizer.step()  # a step without a round, e.g. one after its round timed out
    assert torch.equal(parameter, before)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "the round took too long"),
        (RuntimeError("Averaging step failed: could not find a group"), "no group was found for the round"),
        (OSError("boom"), "the round failed"),
    ],
)
def test_a_failed_round_is_put_in_words(error, words):
    assert in_english(failure_words(error)) == words


class Counting(torch.optim.SGD):
    """An optimizer of a script, which keeps something beside its state."""

    def __init__(self, groups):
        super().__init__(groups, lr=1.0)
        self.factor = 3.0

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data -= group["lr"] * self.factor * parameter.grad


def test_an_optimizer_of_a_script_steps_on_a_good_round_only(rounds, told):
    parameter = parameter_with_gradient([0.3, -0.4])
    ours = guarded(Counting([parameter]), rounds, clip_norm=None)
    assert isinstance(ours, Counting)
    ours.step()  # hivemind's first step, which changes nothing
    ours.step()
    assert torch.equal(parameter.detach(), torch.zeros(2))
    opened(rounds, 0, 8).fail(verbatim("the round failed"))
    ours.step()
    assert torch.equal(parameter.detach(), torch.zeros(2))
    opened(rounds, 1, 8).settle(GOOD)
    ours.step()
    assert torch.allclose(parameter, torch.tensor([-0.9, 1.2]))
    assert isinstance(told[-1], ContributionConfirmed)


def test_the_norm_of_the_average_is_bounded_for_an_optimizer_of_a_script(rounds):
    parameter = parameter_with_gradient([3.0, -4.0])
    opened(rounds, 0, 8).settle(GOOD)
    guarded(torch.optim.SGD([parameter], lr=1.0), rounds, clip_norm=0.5).step()
    assert torch.allclose(parameter, torch.tensor([-0.3, 0.4]))
