"""An engine with a real worker, which loses p2pd or hangs: it is ended, says why, and the next one trains again."""

import logging
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from english import in_english
from fakes import FakeLedger, FakePauses, FakeSettings, FakeShards, make_project
from manifests import raw
from skep.adapters.clock import SystemClock
from skep.adapters.process.worker import WorkerProcess
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.settings.settings import DEFAULTS
from skep.engine.engine import Engine
from skep.host.practice.swarm import PracticeFolder, seed
from worker_pipes import TINY, cut_shards

START_SECONDS, NOTICE_SECONDS = 240, 90


@dataclass
class FolderShards(FakeShards):
    """The shards of a folder."""

    folder: Path = Path()

    def fetch(self, shard, reach, post):
        post(m.ShardArrived(shard.sha256, str(self.folder / f"{shard.sha256}.safetensors")))


class Volunteer:
    """An engine that has joined a swarm with nobody but its seed, in an epoch that does not end."""

    def __init__(self, folder, seeds):
        identity = FileIdentity(folder / "identity.key")
        identity.peer_id  # noqa: B018 - creates the key
        self.trained, self.problems = 0, []
        self.engine = Engine(
            clock=SystemClock(),
            make_worker=partial(
                WorkerProcess,
                registry_file=folder / "worker.json",
                make_run_folder=make_run_folder,
                stderr_log=logging.getLogger("worker"),
            ),
            open_ledger=FakeLedger,
            shards=FolderShards(cut_shards(folder), folder=folder),
            settings=FakeSettings(dict(DEFAULTS) | {"compute.threads": 1, "compute.device": "cpu"}),
            pauses=FakePauses(),
            identity=lambda _project: identity,
            notify=self.problems.append,
            listen_host=lambda _: "127.0.0.1",
            shards_folder=str(folder),
        )
        self.engine.observe(self._look)
        self.engine.start()
        manifest = raw(**TINY | {"id": "starts-again", "peers": list(seeds), "sync__target_batch_size": 1_000_000})
        self.engine.post(m.Join(make_project(manifest=manifest)))

    def _look(self, message, _snapshot):
        self.trained += isinstance(message, m.WorkerProgress) and message.samples > 0

    def until(self, condition, within):
        deadline = time.monotonic() + within
        while not condition():
            assert time.monotonic() < deadline, self.engine.snapshot
            time.sleep(0.05)

    def until_it_trains(self):
        before = self.trained
        self.until(lambda: self.engine.snapshot.phase is Phase.TRAINING and self.trained > before, START_SECONDS)

    def close(self):
        self.engine.post(m.Quit())
        assert self.engine.join(20)


@pytest.fixture
def volunteer(tmp_path, tmp_path_factory):
    with seed(PracticeFolder(tmp_path_factory.mktemp("seed")), 0) as addresses:
        made = Volunteer(tmp_path, addresses)
        yield made
        made.close()


def p2pd_and_worker(folder):
    """Of the volunteer, found by its identity: p2pd, the DHT's process, and the worker are each other's parents."""
    for process in psutil.Process().children(recursive=True):
        if process.name() == "p2pd" and any(str(folder) in word for word in process.cmdline()):
            return process, process.parent().parent()
    raise AssertionError("no p2pd")


@pytest.mark.timeout(700)
@pytest.mark.parametrize(
    ("which", "what", "words"),
    [
        (0, signal.SIGKILL, "p2pd, the program that connects to other peers, ended."),
        pytest.param(1, signal.SIGSTOP, "The training process did not answer for", marks=pytest.mark.long),
    ],
    ids=["p2pd is killed", "the worker hangs"],
)
def test_after_the_loss_of_a_part_the_next_worker_trains(volunteer, tmp_path, which, what, words):
    volunteer.until_it_trains()
    parts = p2pd_and_worker(tmp_path)
    family = parts[1].children(recursive=True)
    parts[which].send_signal(what)
    volunteer.until(lambda: volunteer.problems, NOTICE_SECONDS)
    assert in_english(volunteer.problems[0].title).startswith(words)
    volunteer.until(lambda: volunteer.engine.snapshot.phase is not Phase.TRAINING, NOTICE_SECONDS)
    volunteer.until_it_trains()
    assert p2pd_and_worker(tmp_path)[1] != parts[1]
    assert not psutil.wait_procs([*family, parts[1]], 5)[1]
    assert volunteer.engine.snapshot.problem is None
