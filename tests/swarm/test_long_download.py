"""A newcomer whose download of the state lasts several epochs: it goes on in the swarm's epoch, and then averages."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest import mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from skep.core.session.messages import ContributionConfirmed
from skep.worker.swarm.state.donor import StateDonor
from swarm_peers import PATIENCE, STEP_BATCH, SmallPeer, manifest_of, together, wait_until

# the schedule follows the epoch, and an epoch that is loaded skips some
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
EPOCHS_OF_A_DOWNLOAD = 5
CATCHES_UP_WITHIN = 3


def test_a_newcomer_whose_download_lasts_five_epochs_averages_with_the_others_within_three(make_dhts, monkeypatch):
    allowed, compressed = multiprocessing.Semaphore(0), StateDonor._compressed

    def slowly(*given):
        allowed.acquire()
        return compressed(*given)

    monkeypatch.setattr(StateDonor, "_compressed", slowly)  # in the donors' processes, which are forked later
    manifest = manifest_of("slow-download", 2 * STEP_BATCH, sync__average_state_every=1)
    start = [torch.full((4,), float(number)) for number in range(EPOCHS_OF_A_DOWNLOAD)]
    made = []

    def peer(dht):
        with mock.patch.object(RSAPrivateKey, "process_wide", RSAPrivateKey):  # each has a record of its own
            made.append(SmallPeer(manifest, dht, start))
        made[-1].optimizer.tracker.rate = lambda: 0.0  # epochs end by samples
        return made[-1]

    def train(peers):
        epochs = [each.optimizer.local_epoch for each in peers]  # of a newcomer, perhaps the one before
        for each in peers:
            each.contribute([torch.ones(4)] * len(start), STEP_BATCH)
        ready = [each.optimizer.tracker for each in peers]
        wait_until(lambda: ([each.tell() for each in ready], all(each.ready_to_update_epoch for each in ready))[1])
        return together(*(partial(each.finish, epoch) for each, epoch in zip(peers, epochs, strict=True)))

    dhts = make_dhts(3)
    try:
        trainers = [peer(dhts[0]), peer(dhts[1])]
        trainers[1].optimizer.state_averager.allow_state_sharing = False  # or its copy of a later epoch may be taken
        together(*(each.settle_in for each in trainers))
        train(trainers)
        newcomer = peer(dhts[2])
        wait_until(lambda: newcomer.optimizer.tracker.global_epoch == 1)
        with ThreadPoolExecutor(1) as pool:
            loading = pool.submit(newcomer.optimizer.synchronise)
            for _ in range(EPOCHS_OF_A_DOWNLOAD):
                assert not loading.done()
                train(trainers)
                allowed.release()
            for _ in start:  # whatever was sent again to a newcomer that a busy computer kept waiting
                allowed.release()
            loading.result(PATIENCE)
        averager = newcomer.optimizer.state_averager
        assert averager.local_epoch - averager.whole_epoch >= EPOCHS_OF_A_DOWNLOAD - 1
        ends = [train([*trainers, newcomer])[-1] for _ in range(CATCHES_UP_WITHIN)]
        assert any(isinstance(end, ContributionConfirmed) for end in ends), ends
        assert averager.whole_epoch == newcomer.optimizer.local_epoch
        steps = 0.1 * newcomer.optimizer.local_epoch  # of the manifest's rate, with gradients of one
        for begun, ours in zip(start, newcomer.values(), strict=True):
            assert torch.allclose(ours, begun - steps, atol=0.01)  # and it has not drawn the others back
    finally:
        for each in made:
            each.close()
