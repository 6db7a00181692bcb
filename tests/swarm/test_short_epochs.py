"""Epochs that are over in less time than others need to see it: peers that are one epoch apart, and newcomers."""

import math
from dataclasses import replace
from functools import partial
from unittest import mock

import hivemind
import pytest
import torch
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

import forked_peers
from skep.core.session.messages import ContributionConfirmed, ContributionLost
from swarm_peers import PATIENCE, STEP_BATCH, manifest_of, together, wait_until

START = [torch.zeros(4)]
LONG_SEARCH = {"sync__matchmaking_seconds": 5}
"""Peers of a busy computer meet too."""
TARGET = 2 * STEP_BATCH
DELAYS = dict.fromkeys(
    ("sync__delay_optimizer_step", "sync__delay_grad_averaging", "sync__delay_state_averaging"), True
)


def go_ahead(optimizer):
    """The optimizer's peer is in the next epoch, as one that has not seen the others in time."""
    optimizer.state_averager.local_epoch = 1
    with optimizer.tracker.pause_updates():
        optimizer.tracker.update_epoch(1)
    optimizer._should_check_synchronization_on_update = False


def show(peer, other):
    """Publish the peer's samples; returns when the other knows of it."""
    peer.optimizer.tracker.tell()
    wait_until(lambda: other.optimizer.tracker.others)


@pytest.fixture
def stock_pair(swarm):
    """Two peers of hivemind's own optimizer."""
    made = []
    for dht, key in zip(swarm.dhts, swarm.keys, strict=True):
        with mock.patch.object(RSAPrivateKey, "process_wide", lambda key=key: key):
            made.append(
                hivemind.Optimizer(
                    dht=dht,
                    run_id="stock-apart",
                    target_batch_size=TARGET,
                    batch_size_per_step=STEP_BATCH,
                    params=[torch.nn.Parameter(value.clone()) for value in START],
                    optimizer=partial(torch.optim.SGD, lr=0.1),
                    matchmaking_time=2.0,
                    averaging_timeout=30.0,
                    average_state_every=1000,
                    tracker_opts={"max_refresh_period": 1.0, "default_refresh_period": 1.0},
                )
            )
    yield made
    for each in made:
        each.tracker.shutdown(2.0)
        forked_peers.end([each.grad_averager, each.state_averager])


def see(optimizer, epoch):
    """The optimizer's peer sees that the swarm of two is in this epoch and has all of its samples, and looks no more."""
    tracker = optimizer.tracker
    tracker.shutdown(PATIENCE)
    tracker.global_progress = replace(
        tracker.global_progress, epoch=epoch, samples_accumulated=TARGET, num_peers=2, eta_next_epoch=math.inf
    )


def test_stock_peers_that_are_one_epoch_apart_stay_so_in_a_round_that_they_share(stock_pair):
    behind, ahead = stock_pair
    behind._should_check_synchronization_on_update = False
    go_ahead(ahead)

    def step(optimizer, gradient):
        (parameter,) = optimizer.param_groups[0]["params"]
        parameter.grad = torch.full((4,), gradient)
        see(optimizer, 1)
        optimizer.step(batch_size=STEP_BATCH)
        return parameter.tolist()

    moved = together(partial(step, behind, 1.0), partial(step, ahead, 2.0))
    assert moved == [pytest.approx([-0.1 * 1.5] * 4)] * 2
    assert [each.local_epoch for each in stock_pair] == [1, 2]


@pytest.mark.parametrize("delays", [{}, DELAYS], ids=["nothing delayed", "delayed"])
def test_peers_that_are_one_epoch_apart_are_together_after_a_round_that_they_share(swarm, delays):
    with swarm.peers(manifest_of(f"apart-{len(delays)}", TARGET, **LONG_SEARCH, **delays), [START, START]) as (
        behind,
        ahead,
    ):
        for peer in (behind, ahead):
            peer.optimizer.tracker.rate = lambda: 0.0  # epochs end with their samples, and not when they are expected
        together(behind.settle_in, ahead.settle_in)
        go_ahead(ahead.optimizer)
        behind.contribute([torch.ones(4)], STEP_BATCH)
        ahead.contribute([torch.full((4,), 1.2)], STEP_BATCH)
        show(behind, ahead)
        show(ahead, behind)  # its record tells of its next epoch as soon as its round begins, if that is delayed
        ahead.contribute([torch.full((4,), 1.2)], STEP_BATCH)
        ends = together(partial(behind.finish, 0), partial(ahead.finish, 1))
        assert [type(end) for end in ends] == [ContributionConfirmed] * 2, ends
        assert behind.pending() == ahead.pending() == []
        behind.tend()
        assert behind.optimizer.local_epoch >= 2
        if delays:
            return  # with so short epochs, how soon a peer is in its next round depends on what else the computer does
        # and so they stay, with all of their samples
        behind.contribute([torch.ones(4)], STEP_BATCH)
        ahead.contribute([torch.full((4,), 1.2)], STEP_BATCH)
        ends = together(partial(behind.finish, 2), partial(ahead.finish, 2))
        assert [(type(end), end.samples) for end in ends] == [(ContributionConfirmed, STEP_BATCH)] * 2, ends
        assert not behind.all(ContributionLost)


def test_a_lone_peer_sees_a_newcomer_at_the_end_of_its_epoch_however_short_that_was(swarm):
    with swarm.peers(manifest_of("newcomer", TARGET), [START, START]) as (first, newcomer):
        first.settle_in()
        first.contribute([torch.ones(4)], TARGET)
        assert isinstance(first.finish(0), ContributionLost)
        wait_until(lambda: newcomer.optimizer.tracker.global_epoch == 1)
        newcomer.optimizer.synchronise()
        tracker = first.optimizer.tracker
        with tracker.pause_updates():
            tracker.global_progress.next_fetch_time = get_dht_time() + 2 * PATIENCE  # it does not look by itself
            tracker.global_state_updated.set()  # else it would once more, when it had meant to
        newcomer.contribute([torch.full((4,), 1.2)], STEP_BATCH)
        newcomer.optimizer.tracker.tell()
        record = newcomer.optimizer.tracker._local_public_key
        seen = partial(first.optimizer.dht.get, tracker.training_progress_key, latest=True)
        wait_until(lambda: record in getattr(seen(), "value", {}))
        assert not tracker.others
        first.contribute([torch.ones(4)], TARGET)
        # it has searched for the newcomer, which does not come here; alone it would have stepped at once
        assert first.finish(1).reason.id == "round.no_group_was_found_round"
