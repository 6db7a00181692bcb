"""hivemind's PowerSGD and ours, between real averagers."""

import pytest
import torch
from hivemind.averaging.partition import AllreduceException
from hivemind.optim.power_sgd_averager import PowerSGDGradientAverager

from english import raises
from skep.core.errors import SwarmError
from skep.worker.swarm.averaging.low_rank import INDEPENDENT, LowRankGradientAverager, orthonormalise_
from swarm_peers import run_round

SIZE = 64
NOTHING_OF_RANK = 16


def make(kind, dht, name, rank, size=SIZE, **options):
    parameter = torch.nn.Parameter(torch.zeros(size, size))
    parameter.grad = torch.zeros(size, size)
    usual = {"min_matchmaking_time": 2.0, "request_timeout": 0.7, "next_chunk_timeout": 5.0, "allreduce_timeout": 30}
    fixed = {"reuse_grad_buffers": True, "start": True, "averager_rank": rank, "min_compression_ratio": 0.1}
    return kind([parameter], dht=dht, prefix=name, **(usual | fixed | options))


def matrix_of_rank(rank, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(SIZE, rank, generator=generator) @ torch.randn(rank, SIZE, generator=generator)


def average(averagers, gradients):
    """One round; its results, and the gradients that each averager has afterwards."""
    results, found = tried(averagers, gradients)
    failed = [result for result in results if isinstance(result, Exception)]
    assert not failed, failed
    return results, found


def tried(averagers, gradients):
    """As `average`, of a round that may fail."""
    for averager, gradient in zip(averagers, gradients, strict=True):
        averager.parameters[0].grad.copy_(gradient)
        averager.accumulate_grads_(averager.step_batch if hasattr(averager, "step_batch") else 1)
    results = run_round(*averagers)
    for averager in averagers:
        averager.notify_used_averaged_gradients()
    return results, [held(averager) for averager in averagers]


def held(averager):
    with averager.get_tensors() as tensors:
        return tensors[0].clone()


def error(ours, exact):
    return float((ours - exact).norm() / exact.norm())


def worst_errors(averagers, gradients, rounds):
    mean = sum(gradients) / len(gradients)
    return [max(error(found, mean) for found in average(averagers, gradients)[1]) for _ in range(rounds)]


def test_a_gradient_of_lower_rank_gets_worse_in_stock_and_is_exact_in_ours(make_dhts, averagers):
    dhts = make_dhts(2)
    gradients = [matrix_of_rank(2, seed) for seed in (1, 2)]  # their mean has rank 4
    averagers += [make(PowerSGDGradientAverager, dht, "stock", NOTHING_OF_RANK) for dht in dhts]
    averagers += [make(LowRankGradientAverager, dht, "ours", NOTHING_OF_RANK) for dht in dhts]
    stock, ours = (worst_errors(pair, gradients, 3) for pair in (averagers[:2], averagers[2:]))
    print(stock, ours)  # noqa: T201 - helps if the next lines fail
    assert max(stock) > 0.1
    assert max(ours) < 1e-3


@pytest.mark.long
def test_error_feedback_delivers_in_the_long_run_what_single_rounds_leave_out(make_dhts, averagers):
    dhts = make_dhts(2)
    gradients = [matrix_of_rank(SIZE, seed) for seed in (1, 2)]
    mean = sum(gradients) / 2
    averagers += [make(LowRankGradientAverager, dht, "feedback", rank=8) for dht in dhts]
    total, errors = torch.zeros_like(mean), []
    for number in range(1, 6):
        results, found = average(averagers, gradients)
        assert all(len(result.facts.heard) == 1 and result.facts.complete for result in results)
        assert torch.allclose(found[0], found[1], atol=1e-3)  # both peers have the same result
        total += found[0]
        errors.append(error(total / number, mean))
    print(errors)  # noqa: T201 - as above
    assert errors[0] > 0.5
    assert errors[-1] < errors[0] * 0.8
    assert errors == sorted(errors, reverse=True)


class FailsOnce:
    """The first attempt at a round fails on every peer, after its gradients were added."""

    failed = False

    async def _run_allreduce_inplace_(self, *args, **kwargs):
        if not self.failed:
            self.failed = True
            raise AllreduceException("on purpose")
        await super()._run_allreduce_inplace_(*args, **kwargs)


class StockFailsOnce(FailsOnce, PowerSGDGradientAverager):
    pass


class OursFailsOnce(FailsOnce, LowRankGradientAverager):
    pass


for each in (StockFailsOnce, OursFailsOnce):
    each.__name__ = PowerSGDGradientAverager.__name__  # the RPC handler names contain it


@pytest.mark.long
def test_a_round_that_is_tried_again_counts_the_gradients_twice_in_stock_and_once_in_ours(make_dhts, averagers):
    dhts = make_dhts(2)
    gradients = [matrix_of_rank(1, seed) for seed in (1, 2)]
    averagers += [make(StockFailsOnce, dht, "again-stock", rank=2) for dht in dhts]
    averagers += [make(OursFailsOnce, dht, "again-ours", rank=2) for dht in dhts]
    _, found = average(averagers, gradients * 2)
    mean = sum(gradients) / 2
    assert error(found[0], 2 * mean) < 1e-3
    assert error(found[2], mean) < 1e-3


@pytest.mark.long
def test_a_value_that_is_not_finite_stays_in_stock_and_not_in_ours(make_dhts, averagers):
    dhts = make_dhts(2)
    gradients = [matrix_of_rank(1, seed) for seed in (1, 2)]
    averagers += [make(PowerSGDGradientAverager, dht, "nan-stock", rank=2) for dht in dhts]
    averagers += [make(LowRankGradientAverager, dht, "nan-ours", rank=2) for dht in dhts]
    poison = [torch.full((SIZE, SIZE), torch.nan), gradients[1]]
    _, found = tried(averagers, poison * 2)
    # stock's spreads; ours is not sent, and the optimizer of its own peer refuses it
    assert [bool(each.isnan().any()) for each in found] == [True, True, True, False]
    _, found = average(averagers, gradients * 2)
    assert all(each.isnan().any() for each in found[:2])
    assert all(error(each, sum(gradients) / 2) < 1e-3 for each in found[2:])


@pytest.mark.long
def test_a_peer_without_weight_keeps_its_gradients_out_of_the_error_feedback(make_dhts, averagers):
    dhts = make_dhts(2)
    gradients = [matrix_of_rank(1, seed) for seed in (1, 2)]
    averagers += [make(PowerSGDGradientAverager, dht, "light-stock", rank=2) for dht in dhts]
    averagers += [make(LowRankGradientAverager, dht, "light-ours", rank=2) for dht in dhts]
    for averager, gradient in zip(averagers, gradients * 2, strict=True):
        averager.parameters[0].grad.copy_(gradient)
        averager.accumulate_grads_(1)
    for averager in averagers[1::2]:
        averager.local_samples_accumulated = 0  # the averaging weight
    run_round(*averagers)
    assert error(held(averagers[2]), gradients[0]) < 1e-3
    assert averagers[1]._ms[0].any()
    assert not averagers[3]._ms[0].any()


@pytest.mark.long
def test_a_newcomer_takes_over_the_factors_of_the_swarm_and_drops_its_error_feedback(make_dhts, averagers):
    dhts = make_dhts(3)
    averagers += [make(LowRankGradientAverager, dht, "factors", rank=2) for dht in dhts[:2]]
    assert torch.equal(averagers[0]._qs[0], averagers[1]._qs[0])  # equal from the start, on every computer
    average(averagers, [matrix_of_rank(SIZE, seed) for seed in (1, 2)])
    newcomer = make(LowRankGradientAverager, dhts[2], "factors", rank=2)
    averagers.append(newcomer)
    newcomer._ms[0].fill_(1.0)
    assert not torch.allclose(newcomer._qs[0], averagers[0]._qs[0])
    newcomer.forget()  # asks no other peer
    assert not torch.allclose(newcomer._qs[0], averagers[0]._qs[0])
    assert not newcomer._ms[0].any()
    newcomer._ms[0].fill_(1.0)
    newcomer.catch_up()
    assert torch.allclose(newcomer._qs[0], averagers[0]._qs[0], rtol=1e-3)
    assert not newcomer._ms[0].any()


@pytest.mark.long
def test_factors_of_another_model_are_refused(make_dhts, averagers):
    dhts = make_dhts(2)
    averagers += [
        make(LowRankGradientAverager, dht, "other", 2, size) for dht, size in zip(dhts, (64, 48), strict=True)
    ]
    with raises(SwarmError, match=r"tensor 0 of its state as \(64, 2\)"):
        averagers[1].catch_up()


def test_columns_that_hold_nothing_of_their_own_become_zero_and_the_others_orthonormal():
    matrix = matrix_of_rank(3, 5)[:, :8].clone()
    first = matrix[:, 0] / matrix[:, 0].norm()
    orthonormalise_(matrix)
    squares = matrix.t() @ matrix
    assert torch.allclose(squares, torch.diag(torch.tensor([1.0, 1, 1, 0, 0, 0, 0, 0])), atol=1e-5)
    assert torch.allclose(matrix[:, 0], first)
    nearly = torch.eye(4, 2) + torch.tensor([[0.0, 1 / INDEPENDENT], [0, -0.5], [0, 0], [0, 0]])
    orthonormalise_(nearly)
    assert not nearly[:, 1].any()  # below the threshold


def test_a_matrix_that_is_not_finite_is_left_for_the_optimizer_to_refuse():
    matrix = torch.tensor([[1.0, torch.nan], [2.0, 3.0]])
    orthonormalise_(matrix)
    assert matrix.isnan().any()
