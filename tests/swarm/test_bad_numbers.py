"""Real rounds in which a peer's parameters are no good, and a peer that missed a round."""

import asyncio
import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.state_averager import TrainingStateAverager

from english import raises
from lying_reducers import LIE, lying
from skep.core.errors import SwarmError
from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.worker.swarm.averaging.averagers import CheckedStateAverager
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until

TARGET = 2 * STEP_BATCH
ONE, THREE = [torch.ones(4)], [torch.full((4,), 3.0)]


def make(kind, dht, value, *, offload, **options):
    """An averager of one parameter with `value`."""
    made = kind(
        dht=dht,
        prefix=f"states-{offload}",
        params=[torch.nn.Parameter(torch.full((1000,), value))],
        optimizer=partial(torch.optim.SGD, lr=0.0),
        offload_optimizer=offload,
        min_matchmaking_time=2.0,
        request_timeout=1.0,
        next_chunk_timeout=5.0,
        start=True,
        **options,
    )
    made.wait_until_ready(60)
    return made


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize("bad", [math.nan, 1e6])
@pytest.mark.parametrize(("kind", "spoils"), [(TrainingStateAverager, True), (CheckedStateAverager, False)])
def test_stock_takes_over_the_average_with_a_diverged_peer_and_ours_does_not(
    make_dhts, averagers, kind, spoils, bad, offload
):
    for dht, value in zip(make_dhts(2), (1.0, bad), strict=True):
        averagers.append(make(kind, dht, value, offload=offload))
    facts = []
    averagers[0].settled = facts.append
    together(*(partial(each.step, averaging_round=True, averaging_opts={"timeout": 60}) for each in averagers))
    values = averagers[0].main_parameters[0].tolist()
    assert (values != [1.0] * 1000) is spoils
    if not spoils:
        assert not facts[0].shared


@pytest.mark.parametrize("offload", [True, False])
@pytest.mark.parametrize(("kind", "spoils"), [(TrainingStateAverager, True), (CheckedStateAverager, False)])
def test_stock_takes_over_false_parameters_of_a_reducer_and_ours_only_what_steps_could_have_made(
    make_dhts, averagers, kind, spoils, offload
):
    for dht, each in zip(make_dhts(2), (kind, lying(TrainingStateAverager)), strict=True):
        averagers.append(make(each, dht, 0.02, offload=offload, client_mode=each is kind))
    facts = []
    averagers[0].settled = facts.append
    LIE.value = 0.0
    for lie in (0.0, 0.5):
        LIE.value = lie
        for averager in averagers:
            with torch.no_grad():
                averager.main_parameters[0].add_(1e-4)
                averager.optimizer.param_groups[0]["params"][0].copy_(averager.main_parameters[0])
        together(*(partial(each.step, averaging_round=True, averaging_opts={"timeout": 60}) for each in averagers))
    lied = averagers[0].main_parameters[0].max() > 0.1
    assert bool(lied) is spoils
    if not spoils:
        assert [each.shared for each in facts] == [True, False]


@pytest.mark.parametrize(("kind", "sent"), [(DecentralizedAverager, True), (CheckedStateAverager, False)])
def test_a_state_that_is_not_finite_is_not_sent(kind, sent):
    tensors = [torch.ones(3), torch.tensor([1.0, math.inf])]

    class Asked(kind):
        def __init__(self):
            self._inner_pipe = SimpleNamespace(send=lambda request: request[1].set_result((b"", tensors, None)))

        def __del__(self):
            pass

    async def ask():
        return await Asked()._get_current_state_from_host_process()

    if sent:
        assert asyncio.run(ask())[1] is not None
    else:
        with pytest.raises(ValueError, match="not finite"):
            asyncio.run(ask())


def test_a_peer_that_missed_a_round_has_the_parameters_of_the_others_in_the_next_epoch(swarm):
    manifest = manifest_of("missed", TARGET, sync__load_compression="none")
    with swarm.peers(manifest, [[torch.zeros(4)]] * 2) as (first, second):
        together(first.settle_in, second.settle_in)
        first.contribute(ONE, STEP_BATCH)
        second.contribute(THREE, STEP_BATCH)
        take_average = second.optimizer._average_gradients_and_load_into_optimizer

        def wait_too_briefly(control):
            second.optimizer.averaging_timeout = 0.0
            take_average(control)
            second.optimizer.averaging_timeout = 30.0
            wait_until(lambda: first.settled(0) and first.optimizer.local_epoch == 1)

        second.optimizer._average_gradients_and_load_into_optimizer = wait_too_briefly
        ends = finish_together((first, second), 0)
        assert [type(end) for end in ends] == [ContributionConfirmed, ContributionLost]
        assert first.parameters[0].tolist() == pytest.approx([-0.2] * 4)
        second.tend_until(lambda: torch.equal(first.parameters[0], second.parameters[0]))
        assert second.optimizer.epoch == 1
        # and with a model that is spoilt, whatever has spoilt it
        with torch.no_grad():
            second.parameters[0].fill_(math.nan)
        second.compute(ONE, STEP_BATCH)
        second.optimizer.reload()
        assert torch.equal(first.parameters[0], second.parameters[0])
        assert second.all(ContributionLost)[-1].samples == STEP_BATCH
        for each in (first, second):
            each.optimizer.state_averager.allow_state_sharing = False
        with torch.no_grad():
            first.parameters[0].fill_(math.nan)
        with raises(SwarmError, match="not finite any more"):
            first.optimizer.reload()
