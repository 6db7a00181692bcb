"""Two volunteers that nobody can dial average through their project's host, which counts as no peer."""

import pytest

from manifests import raw
from skep.adapters.storage.identity import FileIdentity
from skep.core.session.messages import ContributionConfirmed, StopTraining, WorkerJoined
from skep.host.server.peer_process import PeerProcess
from worker_pipes import TINY, PipedWorker, cut_shards

pytestmark = pytest.mark.long

UNHURRIED = {"id": "helped", "sync__target_batch_size": 2048, "sync__matchmaking_seconds": 3}
"""At a tenth of the share an epoch takes several times the matchmaking time."""
JOIN, ROUNDS = 240, 480


@pytest.fixture
def seed(tmp_path):
    """The peer process of a host that helps in rounds."""
    identity = FileIdentity(tmp_path / "seed.id")
    assert identity.peer_id
    manifest = tmp_path / "manifest.json"
    manifest.write_bytes(raw(**(TINY | UNHURRIED)))
    arguments = ["--identity", str(identity.path), "--manifest", str(manifest), "--checkpoints", str(tmp_path / "kept")]
    made = PeerProcess([*arguments, "--help-rounds"], tmp_path / "seed.log")
    yield made
    made.end()


@pytest.fixture
def clients(tmp_path):
    index = cut_shards(tmp_path)
    made = [PipedWorker(tmp_path, index) for _ in range(2)]
    yield made
    for worker in made:
        worker.close()


def test_two_clients_average_through_the_host(seed, clients):
    (address,) = seed.start()
    for worker in clients:
        worker.start([address], client_mode="on", share=0.1, **UNHURRIED)
    for worker in clients:
        assert worker.wait_for(lambda m: isinstance(m, WorkerJoined), JOIN).client_mode
    for worker in clients:
        confirmed = worker.wait_for(lambda m: isinstance(m, ContributionConfirmed), ROUNDS)
        assert confirmed.peers == 1
    for worker in clients:
        worker.tell(StopTraining())
