"""Peers with a few parameters and our optimizer: a test sets every gradient of the swarm, for exact comparisons."""

import asyncio
import shutil
import signal
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from hivemind.averaging.control import AveragingStage
from hivemind.optim.progress_tracker import ProgressTracker
from hivemind.p2p import P2P
from hivemind.utils.crypto import RSAPrivateKey

import forked_peers
from manifests import raw
from skep.core.session.messages import ContributionConfirmed, ContributionLost, ContributionPending
from skep.recipes.registry import parse_manifest
from skep.worker.swarm.global_rounds import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import Participant, run_of

STEP_BATCH = 8
PATIENCE = 60
"""Seconds within which an epoch ends on a busy machine."""


def manifest_of(name, target, **changes):
    """A manifest with the simplest optimizer and synchronisation, except for `changes`."""
    plain = {
        "id": name,
        "sync__target_batch_size": target,
        "sync__matchmaking_seconds": 2,
        "sync__averaging_timeout_seconds": 30,
        "sync__delay_optimizer_step": False,
        "sync__delay_state_averaging": False,
        "sync__grad_compression": "none",
        "sync__state_compression": "none",
        "sync__average_state_every": 1000,
        "optimizer": {"name": "sgd", "learning_rate": 0.1, "betas": [0, 0], "weight_decay": 0, "clip_norm": None},
        "schedule": {"kind": "constant", "warmup_epochs": 0, "total_epochs": 1000},
    }
    return parse_manifest(raw(**(plain | changes)))


class SmallPeer:
    """One peer with the initial parameters `start`."""

    def __init__(self, manifest, dht, start):
        self.told = []
        self.rounds = Rounds(f"{dht.peer_id}"[-4:], self.told.append)
        self.parameters = self._parameters_of(start)
        self.optimizer = GlobalRounds(Participant(run_of(manifest), dht, self.parameters, STEP_BATCH, self.rounds))

    def _parameters_of(self, start):
        return [torch.nn.Parameter(value.clone()) for value in start]

    def compute(self, gradients, samples):
        """As a backward pass over `samples` with these mean gradients, without filling a step batch."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad += gradient * (samples / STEP_BATCH)
        self.rounds.grow(self.optimizer.local_epoch, samples)

    def contribute(self, gradients, samples):
        self.compute(gradients, samples)
        self.optimizer.contribute(samples)

    def tend(self):
        return self.optimizer.tend(lambda: None)

    def tend_until(self, condition):
        wait_until(lambda: (self.tend(), condition())[1])

    def take_up_until(self, condition):
        """Apply background results to the model; begin no round, for which the other peers may not be ready."""
        wait_until(lambda: (self.optimizer.apply_arrived(), condition())[1])

    def settle_in(self):
        """Learn the swarm's epoch; from then on a peer that is one epoch behind does not load the others' state."""
        self.tend_until(lambda: not self.optimizer._should_check_synchronization_on_update)

    def move_on(self):
        """Wait until the epoch changes: its round has begun, or without delayed parts has ended."""
        wait_until(self.tend)

    def finish(self, epoch):
        """Wait until the contribution to `epoch` is settled; returns how."""
        self.tend_until(lambda: self.settled(epoch))
        return self.settled(epoch)

    def settled(self, epoch):
        ends = self.all(ContributionConfirmed, ContributionLost)
        return next((message for message in ends if message.epoch == epoch), None)

    def pending(self):
        """Epochs with a pending contribution."""
        begun = [message.epoch for message in self.all(ContributionPending)]
        return [epoch for epoch in begun if not self.settled(epoch)]

    def all(self, *kinds):
        return [message for message in self.told if isinstance(message, kinds)]

    def values(self):
        return [parameter.detach().clone() for parameter in self.parameters]

    def close(self):
        self.optimizer.tracker.shutdown(2.0)
        forked_peers.end([self.optimizer.grad_averager, self.optimizer.state_averager])


def wait_until(condition, within=PATIENCE):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def together(*calls):
    """The results of the calls, each in its own thread."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def finish_together(peers, epoch):
    """How the contribution of each to `epoch` ends, whose samples are all there.

    They look for a group when each knows that, however slow the computer: one that is early gives up before the others come.
    """
    trackers = [peer.optimizer.tracker for peer in peers]
    wait_until(lambda: ([each.tell() for each in trackers], all(each.ready_to_update_epoch for each in trackers))[1])
    return together(*(partial(peer.finish, epoch) for peer in peers))


def run_round(*averagers):
    """One round of all averagers; the results in the same order, an exception for each failure.

    The round is due when each has found its group, however slow the computer: our search gives up soon afterwards.
    """
    for averager in averagers:
        averager.wait_until_ready(PATIENCE)
    with ThreadPoolExecutor(len(averagers)) as pool:
        controls = [averager.schedule_step(timeout=PATIENCE) for averager in averagers]
        wait_until(lambda: all(control.stage is AveragingStage.AWAITING_TRIGGER for control in controls))
        for averager, control in zip(averagers, controls, strict=True):
            averager.step(control=control, wait=False)
        return list(pool.map(outcome, controls))


def outcome(control):
    try:
        return control.result(PATIENCE)
    except Exception as error:  # noqa: BLE001 - whatever the averager's process raised
        return error


class SmallSwarm:
    """Two DHT nodes for the peers of several runs, one run after the other; each node has one key for its records."""

    def __init__(self):
        self.dhts = [forked_peers.LastingDHT(start=True, startup_timeout=60)]
        seeds = [str(address) for address in self.dhts[0].get_visible_maddrs()]
        self.dhts.append(forked_peers.LastingDHT(initial_peers=seeds, start=True, startup_timeout=60))
        self.keys = [RSAPrivateKey() for _ in self.dhts]

    @contextmanager
    def peers(self, manifest, starts, kind=SmallPeer):
        """One peer for each of `starts`, each on its own node."""
        made = []
        # the averagers' processes inherit the warning filters: hivemind's codecs cause warnings that must be ignored
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from self._peers(manifest, starts, made, kind)

    def _peers(self, manifest, starts, made, kind):
        try:
            for dht, key, start in zip(self.dhts, self.keys, starts, strict=False):
                # otherwise all peers of one process would share a record
                with mock.patch.object(RSAPrivateKey, "process_wide", lambda key=key: key):
                    made.append(kind(manifest, dht, start))
            yield made
        finally:
            for peer in made:
                peer.close()


@contextmanager
def small_swarm():
    """A swarm with its sockets in a temporary folder; its processes and files are removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="s-"))  # short: unix socket paths end at 108 characters
    interrupt = signal.getsignal(signal.SIGINT)
    with mock.patch.object(P2P, "_UNIX_SOCKET_PREFIX", f"/unix{folder}/h-"):
        with mock.patch.object(ProgressTracker, "run", run_tracker):
            swarm = SmallSwarm()
            yield swarm
        signal.signal(signal.SIGINT, interrupt)  # hivemind ignores SIGINT after its first averager
        forked_peers.end_dhts(swarm.dhts)
    shutil.rmtree(folder)


def run_tracker(tracker):
    """As hivemind's, but closes its event loop at the end, which hivemind does not."""

    async def both():
        await asyncio.gather(tracker._progress_reporter(), tracker._progress_fetcher())

    with asyncio.Runner() as runner:
        runner.run(both())
    tracker.shutdown_complete.set()
