"""When a peer that missed a round loads a state."""

from dataclasses import replace

import pytest
import torch

from english import in_english
from skep.worker.swarm.apart import ALONE_EPOCHS, AVERAGED_AGAIN, REFUSED, WAIT_EPOCHS, Apart
from skep.worker.swarm.rounds import RoundFacts

GOOD = RoundFacts(group_size=2, heard=("a",), missing=(), complete=True)
ANOTHER_IS_MISSING = replace(GOOD, missing=("b",), complete=False)
RARELY = 1000


@pytest.fixture
def told():
    return []


def apart(told, every):
    return Apart(every, told.append)


def loads(made, epochs):
    return [epoch for epoch in epochs if made.must_load(epoch)]


@pytest.mark.parametrize("facts", [None, replace(GOOD, heard=()), replace(GOOD, arrived=False)])
def test_a_missed_round_of_gradients_is_made_up_for_at_once_where_parameters_are_averaged_rarely(told, facts):
    made = apart(told, RARELY)
    made.gradients_averaged(4, facts)
    assert loads(made, range(5, 100))[0] == 5


@pytest.mark.parametrize("facts", [GOOD, ANOTHER_IS_MISSING])
def test_a_peer_that_got_the_average_is_not_apart(told, facts):
    made = apart(told, RARELY)
    made.gradients_averaged(4, facts)
    assert loads(made, range(5, 100)) == []


def test_an_averaging_of_parameters_that_comes_soon_is_waited_for(told):
    made = apart(told, 4)
    made.gradients_averaged(4, None)
    assert loads(made, range(5, 9)) == []
    made.parameters_averaged(8, GOOD)
    assert loads(made, range(9, 100)) == []


@pytest.mark.parametrize("facts", [None, replace(GOOD, refused=True)])
def test_a_peer_whose_averagings_of_parameters_fail_loads_a_state_in_the_end(told, facts):
    made = apart(told, 1)
    for epoch in range(5, 5 + WAIT_EPOCHS):
        made.parameters_averaged(epoch, facts)
        assert not made.must_load(epoch)
    assert made.must_load(5 + WAIT_EPOCHS)


def test_a_peer_whose_rounds_all_fail_does_not_load_states_all_the_time(told):
    made = apart(told, RARELY)
    loaded = []
    for epoch in range(30):
        made.gradients_averaged(epoch, None)
        if made.must_load(epoch + 1):
            loaded.append(epoch + 1)
            made.together()
    assert loaded == [1, 1 + WAIT_EPOCHS, 1 + 2 * WAIT_EPOCHS]


def test_a_refused_average_is_said_once(told):
    made = apart(told, 1)
    for epoch in range(3):
        made.parameters_averaged(epoch, replace(GOOD, refused=True))
    assert [each.problem for each in told] == [REFUSED]
    made.parameters_averaged(9, GOOD)
    assert (told[1].problem, told[1].over) == (AVERAGED_AGAIN, REFUSED)
    made.parameters_averaged(10, replace(GOOD, refused=True))
    assert [each.problem for each in told[2:]] == [REFUSED]
    assert in_english(REFUSED.title)


def test_statistics_that_lack_one_step_wear_off():
    """As of a peer whose parameters a round has made equal again (decision 049)."""
    generator = torch.Generator().manual_seed(1)
    whole, lacking = (torch.nn.Parameter(torch.zeros(1000)) for _ in range(2))
    optimizers = [torch.optim.AdamW([each], lr=1e-3, betas=(0.9, 0.999)) for each in (whole, lacking)]
    apart_by = []
    for number in range(60):
        gradient = torch.randn(1000, generator=generator) + 0.3
        before = whole.detach().clone()
        for parameter, optimizer in zip((whole, lacking), optimizers, strict=True):
            if parameter is whole or number != 5:
                parameter.grad = gradient
                optimizer.step()
        steps = [parameter.detach() - before for parameter in (whole, lacking)]
        apart_by.append(float((steps[0] - steps[1]).norm() / steps[0].norm()))
        with torch.no_grad():
            lacking.copy_(whole)
    assert apart_by[4] == 0.0
    assert apart_by[5] > 0.5
    assert apart_by[56] < 0.05


# --- alone


def test_a_peer_whose_rounds_are_shared_is_not_alone(told):
    made = apart(told, 1)
    for epoch in range(20):
        made.gradients_averaged(epoch, GOOD)
        assert not made.is_alone(epoch + 1)
        assert not made.is_alone(epoch + 3)  # with delays the last result is two epochs old


@pytest.mark.parametrize("facts", [None, replace(GOOD, heard=(), idle=True), replace(GOOD, arrived=False)])
def test_some_epochs_after_the_last_shared_round_a_peer_is_alone(told, facts):
    made = apart(told, 1)
    made.gradients_averaged(5, GOOD)
    for epoch in range(6, 6 + ALONE_EPOCHS):
        made.gradients_averaged(epoch, facts)
    assert [made.is_alone(epoch) for epoch in (5 + ALONE_EPOCHS, 6 + ALONE_EPOCHS)] == [False, True]
    made.together()
    assert not made.is_alone(100)


def test_a_newcomer_is_alone_some_epochs_after_its_first_one(told):
    made = apart(told, 1)
    assert not made.is_alone(100)
    made.gradients_averaged(100, None)
    assert [made.is_alone(epoch) for epoch in (101, 101 + ALONE_EPOCHS)] == [False, True]


def test_an_earlier_state_is_asked_for_once_in_some_epochs_and_what_was_done_in_later_ones_is_past(told):
    made = apart(told, RARELY)
    made.gradients_averaged(70, None)
    assert [epoch for epoch in range(71, 90) if made.may_stand_back(epoch)] == [75, 75 + WAIT_EPOCHS]
    made.together()
    made.stood_back()
    made.gradients_averaged(60, None)
    assert loads(made, range(61, 100))[0] == 61
