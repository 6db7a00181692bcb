"""Real DHT nodes and averagers on loopback, with their sockets in a folder of the test."""

import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.worker.process import processes

# as in the worker; must be set before hivemind is imported
processes.use_fork()


@pytest.fixture(autouse=True)
def locks_given_back():
    """Create new result locks: a peer that is killed while it sends a result never releases the lock that all use.

    Only if no peer is left, since a running peer would continue to use the old locks.
    """
    yield
    if (futures := sys.modules.get("hivemind.utils.mpfuture")) and not multiprocessing.active_children():
        futures.MPFuture.reset_backend()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of shards, and their index."""
    from worker_pipes import cut_shards  # noqa: PLC0415 - after the settings above

    folder = tmp_path_factory.mktemp("shards")
    return folder, cut_shards(folder)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """The addresses of a running seed peer."""
    from skep.host.practice.swarm import PracticeFolder, seed  # noqa: PLC0415 - as above

    with seed(PracticeFolder(tmp_path_factory.mktemp("seed")), 0) as addresses:
        yield addresses


@pytest.fixture(autouse=True)
def unhurried_look_ups(monkeypatch):
    """Stock averagers query the DHT without a pause while they look for a group, on the cores of all other tests."""
    if matchmaking := sys.modules.get("hivemind.averaging.matchmaking"):
        from skep.worker.swarm.averaging.search import UnhurriedKeys  # noqa: PLC0415 - takes seconds; only for tests of a swarm

        monkeypatch.setattr(matchmaking, "GroupKeyManager", UnhurriedKeys)


@pytest.fixture
def private_sockets(monkeypatch):
    from hivemind.p2p import P2P  # noqa: PLC0415 - as above

    folder = Path(tempfile.mkdtemp(prefix="s-"))  # short: unix socket paths end at 108 characters
    monkeypatch.setattr(P2P, "_UNIX_SOCKET_PREFIX", f"/unix{folder}/h-")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def options(private_sockets, tmp_path):
    """Options with which a DHT can be started."""
    return WorkerOptions(
        manifest="",
        index=ShardIndex(TextLayout(8, 256), ()),
        identity_path=str(tmp_path / "id"),
        run_folder=str(private_sockets),
    )


@pytest.fixture
def make_dhts(private_sockets):
    import forked_peers  # noqa: PLC0415 - as above

    made = []

    def make(count):
        for _ in range(count):
            seeds = [str(address) for address in made[0].get_visible_maddrs()] if made else []
            made.append(forked_peers.LastingDHT(initial_peers=seeds, start=True, startup_timeout=60))
        return made

    yield make
    forked_peers.end_dhts(made)


@pytest.fixture
def averagers():
    """A list of averagers that are ended after the test."""
    made = []
    yield made
    import forked_peers  # noqa: PLC0415 - as above

    forked_peers.end(made)


@pytest.fixture(scope="module")
def swarm():
    """Two DHT nodes for peers with a few parameters."""
    from swarm_peers import small_swarm  # noqa: PLC0415 - as above

    with small_swarm() as made:
        yield made


STATUS = pytest.StashKey[int]()


def pytest_sessionfinish(session, exitstatus):
    session.config.stash[STATUS] = int(exitstatus)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config):
    """Exit immediately, as the worker does: hivemind's threads would wait for a killed peer forever."""
    if STATUS in config.stash:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash[STATUS])
