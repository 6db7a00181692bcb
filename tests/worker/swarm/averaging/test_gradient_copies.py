"""Gradients that a copy from an Apple GPU brings later than the next operation on their target: as torch's MPS backend does."""

import contextlib

import pytest
import torch
from hivemind.optim.grad_averager import GradientAverager

from skep.worker.swarm.averaging.averagers import CheckedGradientAverager

TOTAL, TIMES = torch.tensor([8.0, 4.0]), 4.0


class Averager:
    """What both classes need of themselves."""

    local_times_accumulated = TIMES

    def __init__(self):
        self.mean = torch.zeros(2)

    def _grad_accumulators(self):
        return [TOTAL]

    @contextlib.contextmanager
    def get_tensors(self):
        yield [self.mean]


@pytest.fixture
def late(monkeypatch):
    """Copies that were not waited for, which are carried out by a call."""
    waiting, really = [], torch.Tensor.copy_

    def copy_(target, source, non_blocking=False):
        if not non_blocking:
            return really(target, source)
        waiting.append((target, source.clone()))
        return target

    monkeypatch.setattr(torch.Tensor, "copy_", copy_)
    return lambda: [really(*each) for each in waiting]


def mean_of(kind, late):
    averager = Averager()
    kind.load_accumulators_into_averager_(averager)
    late()
    return averager.mean


def test_stock_sends_the_sum_in_place_of_the_mean(late):
    assert torch.equal(mean_of(GradientAverager, late), TOTAL)


def test_ours_sends_the_mean(late):
    assert torch.equal(mean_of(CheckedGradientAverager, late), TOTAL / TIMES)


def test_of_nothing_it_is_zero(late, monkeypatch):
    monkeypatch.setattr(Averager, "local_times_accumulated", 0)
    assert torch.equal(mean_of(CheckedGradientAverager, late), torch.zeros(2))
