"""A run goes on without its seed, for those who come back too: they dial the peers of their last rounds."""

import pytest

from skep.adapters.storage.identity import FileIdentity
from skep.core.session.messages import ContributionConfirmed, StopTraining, WorkerFailed, WorkerJoined
from skep.host.server.peer_process import PeerProcess
from swarm_peers import wait_until
from worker_pipes import PipedWorker, cut_shards

SHORT = {"sync__target_batch_size": 512, "share": 0.3}
ROUNDS = 180


@pytest.fixture
def data(tmp_path):
    return tmp_path, cut_shards(tmp_path)


@pytest.fixture
def seed(tmp_path):
    identity = FileIdentity(tmp_path / "seed.id")
    assert identity.peer_id
    made = PeerProcess(["--identity", str(identity.path)], tmp_path / "seed.log")
    yield made
    made.end()


@pytest.fixture
def workers(data):
    made = []

    def make():
        made.append(PipedWorker(*data))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


def is_a(kind):
    return lambda message: isinstance(message, kind)


def test_one_of_three_peers_joins_again_without_the_seed(seed, workers, tmp_path):
    (address,) = seed.start()
    known = tmp_path / "peers"
    three = [workers() for _ in range(3)]
    for worker in three:
        worker.start([address], id="seedless", known_peers=known, **SHORT)
    leaver = three[0]
    confirmed = leaver.wait_for(is_a(ContributionConfirmed), ROUNDS)
    assert confirmed.peers
    wait_until(lambda: list(known.glob("seedless-*.json")))
    leaver.tell(StopTraining())
    leaver.wait_gone()
    seed.end()

    stranger, back = workers(), workers()
    stranger.start([address], id="seedless", known_peers=tmp_path / "nobody", **SHORT)
    back.start([address], id="seedless", known_peers=known, **SHORT)
    assert stranger.wait_for(is_a(WorkerFailed), ROUNDS).retry
    back.wait_for(is_a(WorkerJoined), ROUNDS)
    back.wait_for(lambda m: isinstance(m, ContributionConfirmed) and m.peers == 2, ROUNDS)
    for worker in (*three[1:], back):
        worker.tell(StopTraining())
