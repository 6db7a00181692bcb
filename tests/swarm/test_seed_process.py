"""The seed's process tree ends with it, also when it cannot end its p2pd; one that has lost a part is started again."""

import contextlib
import signal
import time
from functools import partial

import hivemind
import psutil
import pytest

import forked_peers
from english import in_english
from families import alive, kill, lives
from free_ports import free_port
from manifests import raw
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import SwarmError
from skep.core.text import from_data
from skep.host.server.hosting import RestartedPeer
from skep.host.server.peer_process import PeerProcess
from skep.worker.connection.seeds import greet
from terminals import JOIN_SECONDS, wait_until
from worker_pipes import TINY

SOON = 5.0
"""Seconds; without its seed, a p2pd ends by itself only much later."""


@pytest.fixture
def seed(tmp_path):
    """A running seed, and the psutil processes of its tree, the seed's first."""
    made = PeerProcess(["--identity", str(FileIdentity(tmp_path / "seed.id").path)], tmp_path / "seed.log")
    made.start()
    root = psutil.Process(made._process.pid)
    family = [root, *root.children(recursive=True)]
    assert any(each.name().startswith("p2pd") for each in family)
    yield made, family
    made.end()
    kill(family)


def test_a_seed_that_was_killed_leaves_no_p2pd(seed):
    made, family = seed
    family[0].kill()
    wait_until(lambda: family[0] not in alive(family), SOON)
    made.end()
    assert alive(family) == []


def test_a_seed_that_does_not_end_when_asked_is_killed_with_its_p2pd(seed):
    made, family = seed
    family[0].suspend()
    made.end()
    assert alive(family) == []


def test_a_seed_that_does_not_start_says_why(tmp_path):
    (tmp_path / "seed.id").write_bytes(b"no key")
    made = PeerProcess(["--identity", str(tmp_path / "seed.id")], tmp_path / "seed.log")
    with pytest.raises(SwarmError) as raised:
        made.start()
    assert "P2PDaemonError" in str(raised.value.title.args["reason"])


REACHABLE_SECONDS, HANG_SECONDS = 60.0, 90.0
P2PD, DHT, STATE, GRADIENTS = "p2pd", "The process that looks up", "averages the model", "averages gradients"


class Host:
    """A seed with a keeper and a helper, as `skep host` runs it."""

    def __init__(self, folder):
        (folder / "manifest.json").write_bytes(raw(**TINY))
        self.identity = FileIdentity(folder / "seed.id")
        arguments = ["--identity", str(self.identity.path), "--port", str(free_port())]
        arguments += [
            "--manifest",
            str(folder / "manifest.json"),
            "--checkpoints",
            str(folder / "kept"),
            "--help-rounds",
        ]
        self.told, self.process = [], PeerProcess(arguments, folder / "seed.log")
        self.peer = RestartedPeer(self.process, self.told.append)
        self.addresses = self.peer.start()

    def wait_keeping(self, times):
        wait_until(lambda: [each["event"] for each in self.told].count("keeping") == times, JOIN_SECONDS)

    def problems(self):
        return [in_english(from_data(each["title"])) for each in self.told if each["event"] == "problem"]

    def root(self):
        return psutil.Process(self.process._process.pid)

    def part(self, part):
        """The DHT's process starts p2pd; the keeper's averager is started before the helper's."""
        p2pd = next(each for each in self.root().children(recursive=True) if "p2pd" in each.name())
        dht = p2pd.parent()
        averagers = sorted((each for each in self.root().children() if each != dht), key=psutil.Process.create_time)
        return dict(zip((DHT, P2PD, STATE, GRADIENTS), (dht, p2pd, *averagers), strict=True))[part]


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    yield made
    print((tmp_path / "seed.log").read_text())  # noqa: T201 - shown if the test fails: what a failed start has waited for
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [made.root(), *made.root().children(recursive=True)]
        made.peer.end()
        kill(family)


@pytest.fixture
def look(host, private_sockets):
    """Whether the seed's DHT answers another peer's."""
    dht = hivemind.DHT(start=True, startup_timeout=60)

    def reached():
        asking = partial(greet, peer=host.identity.peer_id, addresses=host.addresses, patience=3.0)
        return dht.run_coroutine(asking).ahead is not None

    yield reached
    forked_peers.end_dhts([dht])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("part", "what", "within"),
    [
        (P2PD, signal.SIGKILL, REACHABLE_SECONDS),
        (STATE, signal.SIGKILL, REACHABLE_SECONDS),
        *(pytest.param(part, signal.SIGKILL, REACHABLE_SECONDS, marks=pytest.mark.long) for part in (DHT, GRADIENTS)),
        *(pytest.param(part, signal.SIGSTOP, REACHABLE_SECONDS + HANG_SECONDS, marks=pytest.mark.long) for part in (P2PD, DHT, STATE)),
    ],
)  # fmt: skip
def test_a_seed_that_lost_a_part_says_which_and_is_reachable_again(host, look, part, what, within):
    host.wait_keeping(1)
    assert look()
    lost, family = host.part(part), [host.root(), *host.root().children(recursive=True)]
    begun = time.monotonic()
    lost.send_signal(what)
    wait_until(lambda: not lives(family[0]), within)
    wait_until(look, within - (time.monotonic() - begun))
    host.wait_keeping(2)
    said = host.problems()
    lost_at = next(number for number, each in enumerate(said) if part in each)
    assert "The seed peer ended unexpectedly." in said[lost_at + 1 :]  # on a busy computer a start may fail then
    assert not alive(family)
