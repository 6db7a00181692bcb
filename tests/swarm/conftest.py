"""Real DHT nodes and averagers on loopback, with their sockets in a folder of the test's own."""

import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from skep.worker.process import processes

# as in the worker, and before hivemind is imported
processes.use_fork()
# as in the worker: without it torch starts a torch_shm_manager, and aborts when that ends before it
os.environ["HIVEMIND_MEMORY_SHARING_STRATEGY"] = "file_descriptor"


@pytest.fixture(autouse=True)
def locks_given_back():
    """A peer that is killed while it tells a result keeps the lock under which everybody tells results: make new ones.

    Only when no peer is left, since those would go on using the old ones.
    """
    yield
    if (futures := sys.modules.get("hivemind.utils.mpfuture")) and not multiprocessing.active_children():
        futures.MPFuture.reset_backend()


@pytest.fixture
def private_sockets(monkeypatch):
    from hivemind.p2p import P2P  # noqa: PLC0415 - takes seconds; only tests that need a swarm pay

    folder = Path(tempfile.mkdtemp(prefix="s-"))  # short: unix socket paths end at 108 characters
    monkeypatch.setattr(P2P, "_UNIX_SOCKET_PREFIX", f"/unix{folder}/h-")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_dhts(private_sockets):
    import hivemind  # noqa: PLC0415 - as above

    made = []

    def make(count):
        for _ in range(count):
            seeds = [str(address) for address in made[0].get_visible_maddrs()] if made else []
            made.append(hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60))
        return made

    yield make
    for process in psutil.Process().children(recursive=True):
        process.kill()
    for dht in made:
        dht.join(10)


@pytest.fixture
def averagers():
    """A list of averagers; those in it are ended after the test."""
    made = []
    yield made
    for averager in made:
        averager.kill()
        averager.join(10)


@pytest.fixture(scope="module")
def swarm():
    """Two DHT nodes for peers of a few numbers."""
    from swarm_peers import small_swarm  # noqa: PLC0415 - as above

    with small_swarm() as made:
        yield made


STATUS = pytest.StashKey[int]()


def pytest_sessionfinish(session, exitstatus):
    session.config.stash[STATUS] = int(exitstatus)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config):
    """End at once, as the worker does: threads of hivemind that wait for a killed peer would hold the interpreter for ever."""
    if STATUS in config.stash:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash[STATUS])
