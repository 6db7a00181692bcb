"""What the process of an averager holds by itself after a round, after it loaded a state, and of what it was forked from:
stock's, and ours."""

import gc
import sys
import time

import psutil
import pytest
import torch
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager

from skep.worker.averagers import CheckedStateAverager, HonestGradientAverager, share

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other C libraries cannot be asked")
MEBI = 1 << 20
SIZE = 32
"""MiB of all parameters, in tensors of 2 MiB."""
TENSORS, VALUES = SIZE // 2, MEBI // 2
SECONDS, WATCH_SECONDS = 30, 1.0


@pytest.fixture(autouse=True)
def frozen():
    """As in the worker: else a look for garbage makes a forked process's own copy of whatever was imported before."""
    gc.freeze()
    yield
    gc.unfreeze()


def parameters(value):
    made = [torch.nn.Parameter(torch.full((VALUES,), float(value))) for _ in range(TENSORS)]
    for parameter in made:
        parameter.grad = torch.full((VALUES,), float(value))
    return made


class Held:
    """What the process of an averager holds, beyond what it held when this was made, and shares with nobody."""

    def __init__(self, averager):
        self._process = psutil.Process(averager.pid)
        self._before = self._private()

    def _private(self):
        return self._process.memory_full_info().uss

    def least(self):
        """The least of the next moments, in MiB: a result is told before all is put away."""
        deadline, least = time.monotonic() + WATCH_SECONDS, float("inf")
        while time.monotonic() < deadline:
            least = min(least, (self._private() - self._before) / MEBI)
            time.sleep(0.05)
        return least


@pytest.fixture
def held_after_rounds(make_dhts, averagers):
    """What an averager of a kind holds after two rounds with another."""

    def measure(kind):
        for value, dht in enumerate(make_dhts(2)):
            usual = {"min_matchmaking_time": 1.0, "request_timeout": 0.5, "reuse_grad_buffers": True}
            averagers.append(kind(parameters(value), dht=dht, prefix="rounds", start=True, **usual))
            averagers[-1].wait_until_ready(SECONDS)
        held = Held(averagers[0])
        for _ in range(2):
            for each in averagers:
                each.accumulate_grads_(1)
            controls = [each.step(wait=False, timeout=SECONDS) for each in averagers]
            assert [len(control.result(SECONDS)) for control in controls] == [2, 2]
        return held.least()

    return measure


@on_linux
def test_stock_keeps_what_its_rounds_took(held_after_rounds):
    assert held_after_rounds(GradientAverager) > SIZE


@on_linux
def test_ours_gives_it_back(held_after_rounds):
    assert held_after_rounds(HonestGradientAverager) < SIZE / 2


@pytest.fixture
def held_by_a_newcomer(make_dhts, averagers):
    """What an averager of a kind holds when it has loaded the state of another."""

    def measure(kind, load):
        for value, dht in enumerate(make_dhts(2)):
            usual = {"optimizer": torch.optim.Adam, "reuse_tensors": True}  # so that none of ours are left in it either
            averagers.append(kind(dht=dht, prefix="states", start=True, params=parameters(value), **usual))
            averagers[-1].wait_until_ready(SECONDS)
        newcomer = averagers[1]
        held = Held(newcomer)
        load(newcomer)
        assert newcomer.main_parameters[0][0].item() == 0.0
        return held.least()

    return measure


@on_linux
def test_stock_keeps_what_a_state_took(held_by_a_newcomer):
    assert held_by_a_newcomer(TrainingStateAverager, lambda made: made.load_state_from_peers(timeout=SECONDS)) > SIZE


@on_linux
def test_ours_keeps_nothing_of_a_state(held_by_a_newcomer):
    assert held_by_a_newcomer(CheckedStateAverager, lambda made: made.load_checked(SECONDS)) < SIZE / 2


@pytest.mark.parametrize(("kind", "shared"), [(TrainingStateAverager, False), (CheckedStateAverager, True)])
def test_what_changes_in_each_epoch_is_not_left_in_the_averagers_as_it_was(make_dhts, averagers, kind, shared):
    (dht,) = make_dhts(1)
    options = {"optimizer": torch.optim.Adam, "offload_optimizer": True, "custom_gradients": True}
    averagers.append(kind(dht=dht, prefix="states", start=True, params=parameters(1), **options))
    optimizer = averagers[-1].optimizer
    statistics = [value for kept in optimizer.state.values() for value in kept.values() if value.dim()]
    assert len(statistics) == 2 * TENSORS
    assert {tensor.is_shared() for tensor in statistics} == {shared}
    gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
    assert all(gradient is None for gradient in gradients) is shared


def test_a_tensor_that_is_shared_keeps_values_and_shape():
    kept = torch.arange(2.0 * VALUES).reshape(2, VALUES).t()
    also = kept
    share(kept)
    assert kept.is_shared()
    assert also.is_shared()  # the same object: an optimizer holds it
    assert torch.equal(kept, torch.arange(2.0 * VALUES).reshape(2, VALUES).t())


def test_a_small_tensor_is_not_worth_a_descriptor():
    steps = torch.zeros(())
    share(steps)
    assert not steps.is_shared()


def test_zeros_take_no_room_until_they_are_written_to():
    zeros = torch.zeros(16 * MEBI)
    process = psutil.Process()
    before = process.memory_info().shared
    share(zeros)
    assert process.memory_info().shared < before + MEBI
    zeros.fill_(1.0)
    assert process.memory_info().shared > before + 60 * MEBI
