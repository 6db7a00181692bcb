"""A peer that was cut off from a swarm and went on alone, further than the others together, comes back to them."""

import threading
from contextlib import suppress
from unittest import mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

import forked_peers
from skep.core.errors import SwarmError
from skep.core.session.messages import ContributionConfirmed
from swarm_peers import STEP_BATCH, manifest_of, small_swarm, together, wait_until

START = [torch.zeros(4)]
FAR = 40
"""The epoch that the peer has reached alone."""


@pytest.fixture(scope="module")
def three():
    with small_swarm() as swarm:
        seeds = [str(address) for address in swarm.dhts[0].get_visible_maddrs()]
        swarm.dhts.append(forked_peers.LastingDHT(initial_peers=seeds, start=True, startup_timeout=60))
        swarm.keys.append(RSAPrivateKey())
        yield swarm


def go_on(peer, over):
    """Contribute to every epoch until `over`."""
    number = 0
    while not over.is_set():
        number += 1
        if not peer.optimizer.accumulated:
            peer.contribute([torch.full((4,), 1.0 + number % 3)], STEP_BATCH)
        with suppress(SwarmError):  # a worker would start again
            peer.tend()


def cut_off(peer, values):
    """As after FAR epochs alone."""
    averager = peer.optimizer.state_averager
    averager.adopt(FAR, values)
    peer.optimizer.tracker.stand_at(FAR)
    peer.optimizer.tracker.report_local_progress(FAR, 0)


def test_it_takes_the_state_of_the_others_and_is_averaged_again(three):
    manifest = manifest_of("cut-off", 2 * STEP_BATCH)
    with three.peers(manifest, [START] * 3) as peers:
        *others, alone = peers
        together(*(peer.settle_in for peer in peers))
        over = threading.Event()
        threads = [threading.Thread(target=go_on, args=(peer, over)) for peer in others]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: all(peer.all(ContributionConfirmed) for peer in others))
            cut_off(alone, others[0].values())
            threads.append(threading.Thread(target=go_on, args=(alone, over)))
            # in some of its rounds it would meet the others, who are in another epoch, by chance
            with mock.patch.object(alone.optimizer.grad_averager, "step", side_effect=ConnectionError):
                threads[-1].start()
                wait_until(lambda: FAR > alone.optimizer.local_epoch > 0)
            back = alone.optimizer.local_epoch
            wait_until(lambda: any(each.epoch >= back for each in alone.all(ContributionConfirmed)))
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert all(abs(alone.optimizer.local_epoch - peer.optimizer.local_epoch) <= 2 for peer in others)
        assert alone.optimizer.tracker.global_epoch < FAR
