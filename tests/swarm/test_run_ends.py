"""The end of a run: peers take part in no further round; with workers and a host from the first peer to a latecomer."""

import json
import threading

import pytest
import torch

from manifests import raw
from skep.adapters.storage.identity import FileIdentity
from skep.core.session.messages import (
    ContributionPending,
    StopTraining,
    WorkerFinished,
    WorkerJoined,
)
from skep.host.server.peer_process import PeerProcess
from skep.worker.swarm.state.checkpoints import read
from skep.worker.swarm.tracker import Presence
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until
from worker_pipes import TINY, PipedWorker, cut_shards

pytestmark = pytest.mark.timeout(900)

EPOCHS = 3
SIZE = 1 << 19
"""Values of a parameter: enough that both of two peers reduce a part, so that each hears the other."""
RUN = {
    "id": "short-run",
    "schedule": {"kind": "linear", "warmup_epochs": 0, "total_epochs": EPOCHS},
    "sync__target_batch_size": 512,
}
DEADLINE = 600
"""Seconds; the steps on a computer that is busy with other things."""


class Host:
    """A seed with a state keeper that saves every hundredth epoch, and the end."""

    def __init__(self, folder):
        manifest = folder / "run.json"
        manifest.write_bytes(raw(**(TINY | RUN)))
        identity = FileIdentity(folder / "seed.id")
        identity.peer_id  # noqa: B018 - creates the key
        arguments = ["--identity", str(identity.path), "--manifest", str(manifest), "--every", "100"]
        self._process = PeerProcess([*arguments, "--checkpoints", str(folder / "checkpoints")], folder / "seed.log")
        self.addresses = self._process.start()
        self.events = []
        self._told = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for event in self._process.lines():
            with self._told:
                self.events.append(event)
                self._told.notify_all()

    def wait_for(self, kind):
        with self._told:
            assert self._told.wait_for(lambda: any(each.get("event") == kind for each in self.events), DEADLINE), (
                self.events
            )
            return next(each for each in self.events if each.get("event") == kind)

    def close(self):
        self._process.end()


def test_two_peers_end_a_run_and_leave_its_last_state_to_be_found(swarm):
    schedule = {"kind": "linear", "warmup_epochs": 0, "total_epochs": 2}
    with swarm.peers(manifest_of("short", 2 * STEP_BATCH, schedule=schedule), [[torch.zeros(SIZE)]] * 2) as peers:
        for epoch in range(2):
            assert not any(peer.optimizer.finished for peer in peers)
            together(*(peer.settle_in for peer in peers))
            for peer in peers:
                peer.contribute([torch.ones(SIZE)], STEP_BATCH)
            finish_together(peers, epoch)
        for peer in peers:
            assert peer.optimizer.finished
            peer.optimizer.rest(leaving=False)
            peer.tend_until(lambda peer=peer: peer.optimizer.settled)
            assert peer.optimizer.scheduled_grads is peer.optimizer.scheduled_state is None
            assert peer.optimizer.tracker.presence is Presence.RESTING  # its record stays
        for peer in peers:
            wait_until(lambda peer=peer: peer.optimizer.tracker.others_at_least == 2)


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    yield made
    made.close()


def test_a_run_ends_for_its_peers_its_host_and_those_who_come_later(host, tmp_path):
    index = cut_shards(tmp_path)
    host.wait_for("keeping")
    peers = [PipedWorker(tmp_path, index).start(host.addresses, **RUN) for _ in range(2)]
    latecomer = None
    try:
        for peer in peers:
            peer.wait_for(lambda message: isinstance(message, WorkerFinished), DEADLINE)
        kept = host.wait_for("finished")
        assert kept["epoch"] == read(kept["path"]).epoch == EPOCHS, json.dumps(host.events)
        for peer in peers:
            peer.wait_gone(DEADLINE)
            assert peer.process.returncode == 0
            epochs = {message.epoch for message in peer.all(ContributionPending)}
            assert epochs <= set(range(EPOCHS)), "a round after the end"
        latecomer = PipedWorker(tmp_path, index).start(host.addresses, **RUN)
        latecomer.wait_for(lambda message: isinstance(message, WorkerFinished), DEADLINE)
        assert not latecomer.all(WorkerJoined)
        latecomer.wait_gone(DEADLINE)
        assert latecomer.process.returncode == 0
    finally:
        for peer in (*peers, *([latecomer] if latecomer else ())):
            if peer.process.poll() is None:
                peer.tell(StopTraining())
            peer.close()
