"""The error feedback of PowerSGD is as large as the gradients: while it is copied and checked, peers are answered."""

import asyncio
import threading

import pytest
import torch

from skep.worker.swarm.averaging import low_rank
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.low_rank import LowRankGradientAverager


class Unstarted(LowRankGradientAverager):
    """Without a process that its end would have to stop."""

    def __del__(self):
        pass


@pytest.fixture
def averager(monkeypatch):
    """One whose round does nothing; with the names of what was called with its error feedback in the loop's thread."""
    made = object.__new__(Unstarted)
    made._ms, made._qs, made.in_loop = [torch.ones(8, 8)], [torch.ones(8, 2)], []

    async def nothing(_self, *_arguments, **_options):
        return {}

    def seen(name, stock):
        def call(tensors):
            tensors = list(tensors)
            if threading.current_thread() is threading.main_thread() and any(each is made._ms[0] for each in tensors):
                made.in_loop.append(name)
            return stock(tensors)

        return call

    monkeypatch.setattr(CheckedGradientAverager, "_aggregate_with_group", nothing, raising=False)
    for name in ("copies", "finite"):
        monkeypatch.setattr(low_rank, name, seen(name, getattr(low_rank, name)))
    return made


def test_the_loop_is_free_while_the_error_feedback_is_copied_and_checked(averager):
    assert asyncio.run(averager._aggregate_with_group(None, 1)) == {}
    assert averager.in_loop == []


def test_an_error_feedback_that_is_not_finite_is_restored_all_the_same(averager, monkeypatch):
    async def spoil(made, *_arguments, **_options):
        made._ms[0][0, 0] = float("nan")
        return {}

    monkeypatch.setattr(CheckedGradientAverager, "_aggregate_with_group", spoil)
    asyncio.run(averager._aggregate_with_group(None, 1))
    assert torch.equal(averager._ms[0], torch.ones(8, 8))
