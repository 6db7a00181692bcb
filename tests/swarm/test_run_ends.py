"""The end of a run: peers take part in no further round; with workers and a host from the first peer to a latecomer."""

import json
import threading
from pathlib import Path

import pytest
import torch

from free_ports import free_port
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
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.tracker import Presence
from swarm_peers import PATIENCE, STEP_BATCH, finish_together, manifest_of, together, wait_until
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
    """A seed with a state keeper that saves the first epoch, every hundredth one, and the end."""

    def __init__(self, folder, port=0):
        self.checkpoints = folder / "checkpoints"
        manifest = folder / "run.json"
        manifest.write_bytes(raw(**(TINY | RUN)))
        identity = FileIdentity(folder / "seed.id")
        identity.peer_id  # noqa: B018 - creates the key
        arguments = ["--identity", str(identity.path), "--manifest", str(manifest), "--every", "100"]
        arguments += ["--port", str(port), "--checkpoints", str(self.checkpoints)]
        self._process = PeerProcess(arguments, folder / "seed.log")
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


def test_a_peer_that_has_the_last_state_stays_known_though_it_has_contributed_nothing(swarm):
    schedule = {"kind": "linear", "warmup_epochs": 0, "total_epochs": 2}
    with swarm.peers(manifest_of("stands", STEP_BATCH, schedule=schedule), [[torch.zeros(4)]] * 2) as (peer, other):
        state, tracker = peer.optimizer.state_averager, peer.optimizer.tracker
        state.adopt(2, state.copied()[1])
        tracker.stand_at(2)
        peer.optimizer.rest(leaving=False)

        def record():
            peer.tend()
            found = other.optimizer.dht.get(tracker.training_progress_key, latest=True)
            return found and found.value.get(tracker._local_public_key)

        wait_until(record)
        first = record()
        assert (first.value["epoch"], first.value["samples_accumulated"]) == (2, 0)
        wait_until(lambda: (found := record()) and found.expiration_time > first.expiration_time)


@pytest.mark.parametrize("handed_over", [True, False])
def test_who_comes_back_after_the_end_with_an_older_state_takes_the_last_one_if_somebody_has_it(
    swarm, tmp_path, handed_over
):
    schedule = {"kind": "constant", "warmup_epochs": 0, "total_epochs": 5}
    manifest = manifest_of(f"back-{handed_over:d}", STEP_BATCH, schedule=schedule, sync__average_state_every=1)
    with swarm.peers(manifest, [[torch.ones(4)], [torch.zeros(4)]]) as (other, again):
        state = other.optimizer.state_averager
        _, (_, *statistics) = state.copied()
        again.optimizer._snapshots = Snapshots(tmp_path, manifest.run_id, "{}", ["weight"], 10**12)
        again.optimizer._snapshots.finish(lambda: (4, [torch.full((4,), 4.0), *statistics]), PATIENCE)
        state.adopt(5, [torch.full((4,), 5.0), *statistics])
        state.allow_state_sharing = handed_over
        other.optimizer.tracker.report_local_progress(5, 1)
        tracker = again.optimizer.tracker
        wait_until(lambda: (tracker.look(1.0), tracker.global_epoch == 5)[1])
        again.optimizer._state_pause = 0.1
        assert again.optimizer.take_up_snapshot()  # one epoch behind would do during the run
        again.optimizer.synchronise()
        assert again.optimizer.finished
        last = 5 if handed_over else 4
        assert again.optimizer.state_averager.whole_epoch == last
        assert torch.equal(again.values()[0], torch.full((4,), float(last)))


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
        kept_here = tmp_path / "latecomer"
        latecomer = PipedWorker(tmp_path, index).start(host.addresses, snapshots=kept_here, **RUN)
        latecomer.wait_for(lambda message: isinstance(message, WorkerFinished), DEADLINE)
        assert not latecomer.all(WorkerJoined)
        latecomer.wait_gone(DEADLINE)
        assert latecomer.process.returncode == 0
        (result,) = kept_here.rglob("*.safetensors")
        assert same(read(result), read(kept["path"]))
    finally:
        end(*peers, latecomer)


def same(first, second):
    """Whether two checkpoints have the same epoch and parameters."""
    equal = [torch.equal(tensor, second.parameters[name]) for name, tensor in first.parameters.items()]
    return first.epoch == second.epoch and all(equal)


def end(*peers):
    for peer in filter(None, peers):
        if peer.process.poll() is None:
            peer.tell(StopTraining())
            peer.wait_gone()
        peer.close()


def test_a_host_without_the_last_state_gets_it_from_a_peer_that_starts_again_with_it(tmp_path):
    index, port, snapshots = cut_shards(tmp_path), free_port(), tmp_path / "snapshots"
    host, peer = Host(tmp_path, port), None
    try:
        host.wait_for("keeping")
        peer = PipedWorker(tmp_path, index).start(host.addresses, snapshots=snapshots, **RUN)
        last = host.wait_for("finished")
        end(peer)
        (result,) = snapshots.rglob("*.safetensors")
        host.close()
        Path(last["path"]).unlink()  # as if it had been away at the end; a run that short may have left no other one

        host = Host(tmp_path, port)
        host.wait_for("keeping")
        assert not [each for each in host.events if each.get("event") == "finished"]
        peer = PipedWorker(tmp_path, index).start(host.addresses, snapshots=snapshots, **RUN)
        last = host.wait_for("finished")
        assert same(read(last["path"]), read(result))
        assert peer.all(WorkerFinished)
        assert not peer.all(WorkerJoined)
    finally:
        end(peer)
        host.close()
