"""`skep host` from the command line: seed, shards, checkpoints, and a swarm restored after its last peer has left."""

import hashlib
import http.client
import time
from contextlib import closing
from itertools import pairwise
from types import SimpleNamespace

import hivemind
import psutil
import pytest
import torch
from hivemind.optim.state_averager import dump_optimizer_state

from english import in_english
from families import alive
from free_ports import free_port
from manifests import signed
from skep.adapters.storage import signing
from skep.core.project import links
from skep.core.project.fields import key_text
from skep.core.session.messages import ContributionLost, StopTraining
from skep.host.shards.dataset import INDEX_NAME
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.swarm.global_rounds import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.checkpoints import read
from skep.worker.swarm.strategy import Participant, run_of
from terminals import JOIN_SECONDS, Running, is_event, skep, wait_until
from worker_pipes import TINY, PipedWorker, cut_shards

pytestmark = pytest.mark.long

EPOCH_SECONDS = 120
STOP_SECONDS = 3.0
EVERY = 2
"""Epochs from one checkpoint to the next."""


class Project:
    """A folder of shards, a publisher's key, and a manifest that names the host in `home`."""

    def __init__(self, folder):
        self.folder, self.home, self.data = folder, folder / "home", folder / "data"
        self.index = cut_shards(self.data)
        self.port, self.web_port = free_port(), free_port()
        code, said = skep(self.home, "host", "--address", "--port", str(self.port), "--announce", "127.0.0.1")
        assert code == 0
        self.peers = said["addresses"]
        self.key = key_text(signing.ensure_key(folder / "publisher.key"))
        self.changes = TINY | {
            "id": "hosted",
            "peers": self.peers,
            "publisher__key": self.key,
            "data": {
                "index": f"http://127.0.0.1:{self.web_port}/index.json",
                "sha256": hashlib.sha256((self.data / INDEX_NAME).read_bytes()).hexdigest(),
            },
        }
        self.manifest = signed(
            folder, **{name: value for name, value in self.changes.items() if name != "publisher__key"}
        )
        self.run_id = parse_manifest(self.manifest.read_bytes()).run_id
        self.checkpoints = self.home / "host" / "checkpoints" / self.run_id

    def host(self, *arguments):
        data = ["--data", str(self.data), "--web", str(self.web_port), "--every", str(EVERY), "--keep", "2"]
        return Running(self.home, "host", str(self.manifest), *data, *arguments)

    def newest(self):
        return max(self.checkpoints.glob("epoch-*.safetensors"), default=None)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def hosted(project, tmp_path_factory):
    """A host that has ended, with its messages while three peers trained and left; its checkpoints remain."""
    host = project.host()
    workers = [PipedWorker(project.data, project.index) for _ in range(3)]
    try:
        host.wait_for(is_event("started"), JOIN_SECONDS)
        for worker in workers:
            worker.start(**project.changes)
        host.wait_for(lambda event: event.get("peers") == 3, EPOCH_SECONDS)
        host.wait_for(is_event("checkpoint"), EPOCH_SECONDS)
        served = ask(host.wait_for(is_event("started"), 1)["web"], "manifest.json", "manifest.json.sig", "index.json")
        for worker in workers:
            worker.tell(StopTraining())
        for worker in workers:
            worker.wait_gone()
        told = len(host.events)
        wait_until(lambda: any(event.get("peers") == 0 for event in host.events[told:]), EPOCH_SECONDS)
        family = host.family()
        begun = time.monotonic()
        code = host.finish()
        return SimpleNamespace(
            events=host.events, code=code, seconds=time.monotonic() - begun, left=alive(family), served=served
        )
    finally:
        for worker in workers:
            worker.close()
        host.finish()


def ask(web, *names):
    with closing(http.client.HTTPConnection(web.removeprefix("http://"), timeout=10)) as connection:
        found = []
        for name in names:
            connection.request("GET", f"/{name}")
            found.append(connection.getresponse().read())
        return found


def test_a_host_serves_its_data_and_tells_of_peers_epochs_and_checkpoints(project, hosted):
    started = next(event for event in hosted.events if event["event"] == "started")
    assert started["addresses"] == project.peers
    assert links.parse(started["link"]).manifest == f"{started['web']}/manifest.json"
    assert hosted.served[0] == project.manifest.read_bytes()
    assert signing.check(hosted.served[0], hosted.served[1])
    assert hosted.served[2] == (project.data / INDEX_NAME).read_bytes()
    checkpoints = [event for event in hosted.events if event["event"] == "checkpoint"]
    epochs = [event["epoch"] for event in checkpoints]
    *regular, _ = epochs  # the last one is written when the host ends
    assert all(later - earlier >= EVERY for earlier, later in pairwise(regular)), epochs
    assert epochs == sorted(set(epochs))
    assert not [event for event in hosted.events if event["event"] == "problem"]


def test_ctrl_c_ends_a_host_in_three_seconds_with_nothing_left(hosted):
    assert hosted.code == 0
    assert hosted.seconds < STOP_SECONDS
    assert not hosted.left


class Newcomer:
    """A peer in this process, with skep's own optimizer on the project's model."""

    def __init__(self, project, dht):
        manifest = parse_manifest(project.manifest.read_bytes())
        self.told = []
        self.rounds = Rounds("n", self.told.append)
        self.model = open_recipe(manifest.recipe).build()
        self.optimizer = GlobalRounds(Participant(run_of(manifest), dht, list(self.model.parameters()), 4, self.rounds))

    def tensors(self):
        averager = self.optimizer.state_averager
        parameters = [tensor for group in averager.optimizer.param_groups for tensor in group["params"]]
        return [*parameters, *dump_optimizer_state(averager.optimizer)[1]]


@pytest.fixture(scope="module")
def restored(project, hosted):
    """The host, started again after all peers have left."""
    host = project.host()
    host.wait_for(is_event("restored"), JOIN_SECONDS)
    yield host
    host.finish()


def test_a_host_takes_up_its_newest_checkpoint_and_starts_a_peer_that_was_killed_again(project, restored):
    kept = read(project.newest())
    keeper = next(each for each in restored.family() if "skep.host.server.seed" in " ".join(each.cmdline()))
    keeper.kill()
    restored.wait_for(is_event("problem", title="The seed peer ended unexpectedly."), 10)
    wait_until(lambda: len(restored.named("restored")) == 2, JOIN_SECONDS)
    assert {event["epoch"] for event in restored.named("restored")} == {kept.epoch}


@pytest.fixture
def newcomer(project, restored, private_sockets):
    dht = hivemind.DHT(initial_peers=project.peers, start=True, startup_timeout=60)
    yield Newcomer(project, dht)
    hosts = restored.family()
    for process in psutil.Process().children(recursive=True):
        if process not in hosts:
            process.kill()
    dht.join(10)


# the schedule depends on the epoch only, so it advances here before the first step, as intended
@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler:UserWarning")
def test_a_swarm_whose_last_peer_has_left_goes_on_from_the_checkpoint(project, newcomer):
    kept, peer = read(project.newest()), newcomer
    wait_until(lambda: peer.optimizer.tracker.global_epoch == kept.epoch, EPOCH_SECONDS)
    peer.optimizer.synchronise()
    assert peer.optimizer.local_epoch == kept.epoch > 0
    parameters = [kept.parameters[name] for name, _ in peer.model.named_parameters()]
    for ours, theirs in zip(peer.tensors(), [*parameters, *kept.optimizer], strict=True):
        assert torch.equal(ours, theirs)

    # the peer is alone: the keeper removes its own record and enters no round
    wait_until(lambda: contributed(peer) and peer.optimizer.tracker.global_progress.num_peers == 1, EPOCH_SECONDS)
    before = [tensor.clone() for tensor in peer.tensors()]
    contributed(peer, 256)
    wait_until(lambda: peer.optimizer.tend(lambda: None) or peer.optimizer.local_epoch > kept.epoch, EPOCH_SECONDS)
    wait_until(lambda: peer.optimizer.apply_arrived() or any(map(differ, peer.tensors(), before)), EPOCH_SECONDS)
    # reported by the thread that stepped, a moment after the tensors have changed
    wait_until(lambda: losses(peer), EPOCH_SECONDS)
    assert losses(peer) == {"no other peer"}


def losses(peer):
    return {in_english(message.reason) for message in peer.told if isinstance(message, ContributionLost)}


def differ(first, second):
    return not torch.equal(first, second)


def contributed(peer, samples=4):
    """Contribute samples with arbitrary gradients."""
    for parameter in peer.model.parameters():
        parameter.grad += 0.01
    peer.rounds.grow(peer.optimizer.local_epoch, samples)
    peer.optimizer.contribute(samples)
    return samples == 4
