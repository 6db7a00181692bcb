"""The manifest's optimizers compared with plain torch or the paper's formulas, and their common behaviour."""

import copy
from typing import get_args

import pytest
import torch

from english import in_english
from skep.core.project.manifest import OptimizerName, OptimizerSpec
from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.core.text import verbatim
from skep.worker.swarm.optimizers import Lamb, optimizer_factory
from skep.worker.swarm.rounds import RoundFacts, Rounds

GOOD = RoundFacts(group_size=2, heard=("a",), missing=(), complete=True)
START = [[0.5, -2.0, 1.0], [0.0, 0.0]]
GRADIENTS = [[[0.3, -0.1, 0.2], [1.0, -1.0]], [[-0.2, 0.4, 0.1], [0.5, 0.5]]]


def spec(name, clip_norm=None, decay=0.1):
    return OptimizerSpec(name=name, learning_rate=0.1, betas=(0.9, 0.95), weight_decay=decay, clip_norm=clip_norm)


def parameters():
    return [torch.nn.Parameter(torch.tensor(values)) for values in START]


def steps(optimizer, owned, before=lambda: None):
    for gradients in GRADIENTS:
        for parameter, values in zip(owned, gradients, strict=True):
            parameter.grad = torch.tensor(values)
        before()
        optimizer.step()
    return [parameter.detach() for parameter in owned]


def guarded(name, told, **options):
    """An optimizer as hivemind creates it: after a virtual step on zeros."""
    rounds, owned = Rounds("s", told.append), parameters()
    optimizer = optimizer_factory(spec(name, **options), rounds)(owned)
    for parameter in owned:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return optimizer, owned, rounds


def good_round(rounds):
    rounds.grow(0, 8)
    rounds.open(0).settle(GOOD)


PLAIN = {
    "adamw": lambda owned: torch.optim.AdamW(owned, lr=0.1, betas=(0.9, 0.95), weight_decay=0.1),
    "sgd": lambda owned: torch.optim.SGD(owned, lr=0.1, momentum=0.9, weight_decay=0.1),
    "lamb": lambda owned: Lamb(owned, lr=0.1, betas=(0.9, 0.95), weight_decay=0.1),
}


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_each_steps_as_the_plain_one_does_after_a_virtual_step_that_moves_nothing(name):
    told = []
    optimizer, owned, rounds = guarded(name, told)
    assert [parameter.tolist() for parameter in owned] == START
    assert told == []
    plain_owned = parameters()
    plain = PLAIN[name](plain_owned)
    for parameter in plain_owned:
        parameter.grad = torch.zeros_like(parameter)
    if name != "sgd":  # the others count the virtual step
        rates, plain.param_groups[0]["lr"] = plain.param_groups[0]["lr"], 0.0
        plain.step()
        plain.param_groups[0]["lr"] = rates
    exact = steps(plain, plain_owned)
    ours = steps(optimizer, owned, lambda: good_round(rounds))
    assert all(torch.allclose(a, b) for a, b in zip(ours, exact, strict=True))
    assert [type(message) for message in told[1::2]] == [ContributionConfirmed] * 2


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_each_refuses_a_failed_round_and_gradients_that_are_not_finite(name):
    told = []
    optimizer, owned, rounds = guarded(name, told)
    rounds.grow(0, 8)
    rounds.open(0).fail(verbatim("the round took too long"))
    optimizer.step()
    owned[0].grad = torch.tensor([1.0, torch.nan, 1.0])
    good_round(rounds)
    optimizer.step()
    assert [parameter.tolist() for parameter in owned] == START
    lost = [in_english(message.reason) for message in told if isinstance(message, ContributionLost)]
    assert lost == ["the round took too long", "the averaged gradients were not finite or far too large"]


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_each_clips_once_to_the_norm_of_the_manifest(name):
    optimizer, owned, rounds = guarded(name, [], clip_norm=1.0)
    owned[0].grad, owned[1].grad = torch.tensor([30.0, 40.0, 0.0]), torch.zeros(2)
    good_round(rounds)
    optimizer.step()
    assert torch.allclose(owned[0].grad, torch.tensor([0.6, 0.8, 0.0]), atol=1e-5)


def test_a_step_whose_own_round_was_given_up_leaves_the_next_round_alone():
    told = []
    optimizer, owned, rounds = guarded("sgd", told)
    rounds.grow(0, 8)
    rounds.open(0)
    rounds.grow(1, 8)
    rounds.open(1)  # cancels the first round, whose step follows now
    owned[0].grad = torch.ones(3)
    optimizer.step()
    assert [parameter.tolist() for parameter in owned] == START
    assert rounds.oldest.epoch == 1


def test_sgd_without_momentum_has_no_state_and_still_one_virtual_step_only():
    plain = OptimizerSpec(name="sgd", learning_rate=0.1, betas=(0.0, 0.0), weight_decay=0.0, clip_norm=None)
    (owned,) = [torch.nn.Parameter(torch.zeros(2))]
    optimizer = optimizer_factory(plain, Rounds("s", [].append))([owned])
    for _ in range(2):
        owned.grad = torch.ones(2)
        optimizer.step()
    assert owned.tolist() == [0.0, 0.0]
    assert not [value for state in optimizer.state.values() for value in state.values() if value is not None]


def test_lamb_takes_the_step_of_its_paper():
    """Adam's first step is the gradient's sign plus decay; Lamb scales it to lr times the tensor's norm."""
    owned = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    optimizer = Lamb([owned], lr=0.1, betas=(0.9, 0.95), weight_decay=0.5, eps=0.0)
    owned.grad = torch.tensor([0.2, -7.0])
    optimizer.step()
    update = torch.tensor([1.0 + 0.5 * 3, -1.0 + 0.5 * 4])
    assert torch.allclose(owned, torch.tensor([3.0, 4.0]) - 0.1 * 5.0 / update.norm() * update)


def test_lamb_moves_a_tensor_of_zeros_by_the_plain_update():
    owned = torch.nn.Parameter(torch.zeros(2))
    optimizer = Lamb([owned], lr=0.1, eps=0.0)
    owned.grad = torch.tensor([0.2, -7.0])
    optimizer.step()
    assert torch.allclose(owned, torch.tensor([-0.1, 0.1]))


@pytest.mark.parametrize("kind", ["adamw", "lamb"])
def test_a_state_is_put_away_and_taken_up_as_it_was(kind):
    first, owned, rounds = guarded(kind, [])
    other, other_owned, other_rounds = guarded(kind, [])
    steps(first, owned, lambda: good_round(rounds))
    other.load_state_dict(copy.deepcopy(first.state_dict()))
    with torch.no_grad():
        for a, b in zip(other_owned, owned, strict=True):
            a.copy_(b)
    ends = [
        steps(each, its, lambda r=r: good_round(r))
        for each, its, r in [(first, owned, rounds), (other, other_owned, other_rounds)]
    ]
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
