"""What is done with the result of an all-reduce, with a stand-in for hivemind's runner."""

import asyncio
import math
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch

from skep.worker.swarm import honest_averager
from skep.worker.swarm.all_reduce import Used
from skep.worker.swarm.honest_averager import HonestAverager
from skep.worker.swarm.rounds import RoundFacts
from skep.worker.swarm.state_rounds import CheckedRounds, facts_of

GOOD = RoundFacts(group_size=2, heard=("a",), missing=(), complete=True)


class Runner:
    """Yields `changes`, one for each tensor; `watched` is called before each."""

    weight = 1.0

    def __init__(self, changes, *, reduces=True, watched=lambda: None):
        self.changes, self.watched, self.cancelled = changes, watched, False
        self.tensor_part_reducer = SimpleNamespace(num_parts=int(reduces))

    async def __aiter__(self):
        for change in self.changes:
            self.watched()
            yield torch.tensor(change)

    def finalize(self, *, cancel):
        self.cancelled = cancel


OWN = SimpleNamespace(_averaging_alpha=1.0)


def used(kind, runner, tensors):
    return asyncio.run(kind._use(OWN, runner, tensors))


def start():
    return [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]


@pytest.mark.parametrize("kind", [HonestAverager, CheckedRounds])
def test_what_a_round_changes_is_added(kind):
    tensors = start()
    assert used(kind, Runner([[0.5, -0.5], [1.0]]), tensors).refused is False
    assert [tensor.tolist() for tensor in tensors] == [[1.5, 1.5], [4.0]]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e6])
def test_of_an_average_with_one_bad_tensor_none_is_used(bad):
    tensors = start()
    assert used(CheckedRounds, Runner([[0.5, -0.5], [bad]]), tensors) == Used(refused=True)
    assert [tensor.tolist() for tensor in tensors] == [[1.0, 2.0], [3.0]]


def test_parameters_change_only_when_the_whole_average_has_arrived():
    tensors, seen = start(), []
    used(CheckedRounds, Runner([[0.5, -0.5], [1.0]], watched=lambda: seen.append(tensors[0].tolist())), tensors)
    assert seen == [[1.0, 2.0]] * 2


@pytest.mark.parametrize("kind", [HonestAverager, CheckedRounds])
def test_tensors_that_are_not_finite_are_not_sent(kind):
    tensors, begun = [torch.tensor([math.nan])], []
    runner = Runner([[0.0]], watched=lambda: begun.append(True))
    assert used(kind, runner, tensors) == Used(refused=True)
    assert (begun, runner.cancelled) == ([], True)


@pytest.mark.parametrize("reduces", [True, False])
def test_only_a_peer_that_reduces_nothing_measures_the_change_and_in_another_thread(monkeypatch, reduces):
    measured, real = [], honest_averager.magnitude
    monkeypatch.setattr(
        honest_averager, "magnitude", lambda tensor: measured.append(threading.current_thread()) or real(tensor)
    )
    assert used(HonestAverager, Runner([[0.5, -0.5], [1.0]], reduces=reduces), start()).moved is not reduces
    assert bool(measured) is not reduces
    assert threading.main_thread() not in measured


@pytest.mark.parametrize(("change", "moved"), [(1e-7, False), (1e-3, True)])
def test_a_change_by_rounding_is_no_sign_of_another_peer(change, moved):
    runner = Runner([[change, -change], [change]], reduces=False)
    assert used(HonestAverager, runner, start()) == Used(moved=moved)


@pytest.mark.parametrize(
    ("end", "facts"),
    [
        (lambda control: control.set_result(SimpleNamespace(facts=GOOD)), GOOD),
        (lambda control: control.set_exception(RuntimeError()), None),
        (lambda control: control.cancel(), None),
        (lambda control: None, None),
    ],
)
def test_the_facts_of_a_round_are_those_of_its_result(end, facts):
    control = Future()
    end(control)
    assert facts_of(control) == facts


def test_a_round_that_could_not_begin_has_no_facts():
    assert facts_of(None) is None
