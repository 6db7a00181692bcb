"""The results that hivemind's averagers and ours report for a round with a faulty groupmate."""

import asyncio
import math
import multiprocessing

import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.grad_averager import GradientAverager

from lying_reducers import LIE, lying
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.returned import ROUNDS_UNKNOWN
from skep.worker.swarm.state.uplink import Uplink
from swarm_peers import run_round


class SilentAverager(GradientAverager):
    """Joins a group and then never sends anything."""

    async def _aggregate_with_group(self, group_info, min_vector_size, **kwargs):
        await asyncio.sleep(600)


class WatchingAverager(CheckedGradientAverager):
    """Notes whether its uplink is busy when it begins to send."""

    busy = multiprocessing.Value("b", 0)

    async def _use(self, runner, tensors):
        self.busy.value = self._uplink.busy
        return await super()._use(runner, tensors)


for each in (SilentAverager, WatchingAverager):
    each.__name__ = GradientAverager.__name__  # the RPC handler names contain it


UNHURRIED = {"min_matchmaking_time": 6.0, "request_timeout": 3.0, "next_chunk_timeout": 10.0, "allreduce_timeout": 50}
"""For a round in which nobody is to be missed, also on a busy computer."""


def make(kind, dht, value, size=1_000_000, **options):
    """An averager with one gradient of `value`; a small gradient has one part, which only one peer reduces."""
    parameter = torch.nn.Parameter(torch.zeros(size))
    parameter.grad = torch.full((size,), float(value))
    usual = {"prefix": "rounds", "min_matchmaking_time": 2.0, "request_timeout": 1.0, "next_chunk_timeout": 2.0}
    options = usual | {"reuse_grad_buffers": True, "allreduce_timeout": 20} | options
    averager = kind([parameter], dht=dht, start=True, **options)
    averager.accumulate_grads_(1)
    return averager


def value_of(averager):
    with averager.get_tensors() as tensors:
        return float(tensors[0].mean())


def test_the_uplink_is_busy_while_a_round_is_sent(make_dhts, averagers):
    uplink, dhts = Uplink(), make_dhts(2)
    averagers += [
        make(WatchingAverager, dhts[0], 0.0, uplink=uplink),
        make(CheckedGradientAverager, dhts[1], 1.0),
    ]
    run_round(*averagers)
    assert value_of(averagers[0]) == pytest.approx(0.5)
    assert WatchingAverager.busy.value
    assert not uplink.busy


def test_a_whole_round_hears_every_other_peer(make_dhts, averagers):
    averagers += [make(CheckedGradientAverager, dht, value, **UNHURRIED) for value, dht in enumerate(make_dhts(3), 1)]
    results = run_round(*averagers)
    for averager, result in zip(averagers, results, strict=True):
        assert value_of(averager) == pytest.approx(2.0)
        assert result.facts.complete
        assert result.facts.group_size == 3
        others = {str(other.peer_id) for other in averagers if other is not averager}
        assert set(result.facts.heard) == others


def test_stock_calls_a_round_with_a_silent_groupmate_a_success_and_ours_does_not(make_dhts, averagers):
    dhts = make_dhts(4)
    averagers += [make(GradientAverager, dhts[0], 1, prefix="stock"), make(SilentAverager, dhts[1], 3, prefix="stock")]
    averagers += [make(CheckedGradientAverager, dhts[2], 1), make(SilentAverager, dhts[3], 3)]
    stock, _, honest, _ = run_round(*averagers)
    assert len(stock) == 2
    assert value_of(averagers[0]) == pytest.approx(1.0)  # the true mean is 2: not averaged, without an error
    assert honest.facts.heard == ()
    assert not honest.facts.complete


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_a_groupmate_of_weight_zero_is_not_heard(make_dhts, averagers, size):
    dhts = make_dhts(2)
    averagers += [make(CheckedGradientAverager, dht, value, size) for value, dht in zip((1, 3), dhts, strict=True)]
    averagers[1].local_samples_accumulated = 0  # the averaging weight
    result, _ = run_round(*averagers)
    assert value_of(averagers[0]) == pytest.approx(1.0)
    assert result.facts.heard == ()
    assert result.facts.arrived


def again(averagers, values):
    """Gradients for another round."""
    for averager, value in zip(averagers, values, strict=True):
        averager.parameters[0].grad.fill_(value)
        averager.accumulate_grads_(1)


MOST_ROUNDS = 12


def test_a_stock_peer_that_sends_the_opposite_is_left_out_after_a_few_rounds(make_dhts, averagers):
    values = [1.0, 1.0, 1.0, -1.4]  # below the norm from which it would be scaled down
    kinds = [CheckedGradientAverager] * 3 + [GradientAverager]
    dhts = make_dhts(4)
    averagers += [
        make(kind, dht, value, client_mode=kind is GradientAverager)
        for kind, dht, value in zip(kinds, dhts, values, strict=True)
    ]
    hostile = str(averagers[3].peer_id)
    first = run_round(*averagers)
    assert value_of(averagers[0]) == pytest.approx(0.4, abs=1e-3)
    assert hostile in first[0].facts.heard + first[1].facts.heard + first[2].facts.heard
    for _ in range(MOST_ROUNDS):
        again(averagers, values)
        results = run_round(*averagers)
        if value_of(averagers[0]) == pytest.approx(1.0):
            break
    assert [value_of(each) for each in averagers[:3]] == pytest.approx([1.0] * 3)
    told = [result.facts for result in results[:3]]
    assert any(hostile in facts.missing for facts in told)
    assert all(facts.complete for facts in told)


@pytest.mark.parametrize(("kind", "used"), [(GradientAverager, True), (CheckedGradientAverager, False)])
def test_a_stock_peer_that_returns_large_averages_changes_nothing_of_ours(make_dhts, averagers, kind, used):
    dhts = make_dhts(3)
    averagers += [make(each, dht, 1.0) for each, dht in zip((kind, kind, lying(GradientAverager)), dhts, strict=True)]
    LIE.value = 0.0
    run_round(*averagers)
    for _ in range(ROUNDS_UNKNOWN - 1):
        again(averagers, [1.0] * 3)
        run_round(*averagers)
    LIE.value = 1e4
    again(averagers, [1.0] * 3)
    *results, _ = run_round(*averagers)
    for averager, result in zip(averagers[:2], results, strict=True):
        assert (value_of(averager) > 1e3) is used
        if not used:
            assert value_of(averager) == pytest.approx(1.0)
            assert not result.facts.complete
            assert result.facts.missing == (str(averagers[2].peer_id),)


def test_a_stock_peer_that_sends_no_numbers_is_left_out_of_the_round_of_the_others(make_dhts, averagers):
    dhts = make_dhts(3)
    averagers += [make(CheckedGradientAverager, dht, value, 1000) for dht, value in zip(dhts, (1, 3), strict=False)]
    averagers.append(make(GradientAverager, dhts[2], math.nan, 1000, client_mode=True))
    *honest, _ = run_round(*averagers)
    assert [value_of(each) for each in averagers[:2]] == pytest.approx([2.0, 2.0])
    assert all(result.facts.complete for result in honest)


def test_a_client_that_reduces_nothing_believes_its_reducers(make_dhts, averagers):
    dhts = make_dhts(2)
    averagers += [
        make(CheckedGradientAverager, dhts[0], 1),
        make(CheckedGradientAverager, dhts[1], 3, client_mode=True),
    ]
    _, result = run_round(*averagers)
    assert value_of(averagers[1]) == pytest.approx(2.0)
    assert result.facts.heard == (str(averagers[0].peer_id),)


@pytest.mark.parametrize(("kind", "exact"), [(GradientAverager, False), (CheckedGradientAverager, True)])
def test_an_unfinished_step_batch_weighs_what_it_holds(make_dhts, averagers, kind, exact):
    (dht,) = make_dhts(1)
    averager = make(kind, dht, 0.0)
    averagers.append(averager)
    averager.step_batch = 4
    averager.reset_accumulated_grads_()
    # six samples with a gradient of 1 each, as a step batch of four and an incomplete one of two
    for size in (4, 2):
        averager.parameters[0].grad += size / 4
        averager.accumulate_grads_(size)
    averager.load_accumulators_into_averager_()
    assert (value_of(averager) == pytest.approx(1.0)) is exact
    assert isinstance(averager, DecentralizedAverager)
