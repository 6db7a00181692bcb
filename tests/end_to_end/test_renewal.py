"""A worker whose processes have grown, in a real swarm: it ends between two epochs, and nothing is lost by that."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from skep import bootstrap
from skep.adapters.clock import SystemClock
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.process.tree_use import use_of
from skep.adapters.process.worker import WorkerProcess
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.adapters.storage.logs import open_log
from skep.adapters.storage.paths import Home, make_run_folder
from skep.adapters.storage.settings_file import PauseFile
from skep.core.policy.growth import Use
from skep.core.session import messages as m
from skep.core.session.losses import LEFT
from skep.core.session.phases import Phase
from skep.core.session.renewal import AFRESH
from skep.core.session.snapshot import Snapshot
from skep.core.session.transitions import STOPPED
from skep.core.text import Problem
from skep.engine.engine import Engine
from skep.ports import Post
from terminals import JOIN_SECONDS, wait_until

pytestmark = pytest.mark.long

EPOCHS_SECONDS = 240
GB = 10**9


class Stay:
    """An engine whose worker is measured five times a second, and uses `leaked` bytes more than it really does."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.leaked = 0
        self.seen: list[tuple[m.Message, Snapshot]] = []
        self.notified: list[Problem] = []
        self._news = threading.Lock()
        self.engine = Engine(
            clock=SystemClock(),
            make_worker=self._worker,
            open_ledger=lambda: SqliteLedger(home.ledger_file),
            shards=HttpShards(
                home.cache_folder, home.checkpoint_notes_folder, limit_bytes=lambda: GB, keep_free_bytes=lambda: 0
            ),
            settings=bootstrap.settings(home),
            pauses=PauseFile(home.pause_file),
            identity=partial(bootstrap.identity_in, home),
            notify=self.notified.append,
            listen_host=lambda _: "127.0.0.1",
            snapshots_folder=str(home.snapshots_folder),
            shards_folder=str(home.cache_folder),
        )
        self.engine.observe(self._observe)

    def _worker(self, post: Post) -> WorkerProcess:
        return WorkerProcess(
            post,
            registry_file=self.home.worker_file,
            make_run_folder=make_run_folder,
            stderr_log=open_log(self.home.logs_folder, "worker"),
            measure=self._measure,
            measure_seconds=0.2,
        )

    def _measure(self, processes: Iterable[psutil.Process]) -> Use:
        used = use_of(processes)
        return Use(used.memory + self.leaked, used.threads, used.descriptors)

    def _observe(self, message: m.Message, snapshot: Snapshot) -> None:
        with self._news:
            self.seen.append((message, snapshot))

    def named(self, kind: type) -> list[m.Message]:
        with self._news:
            return [message for message, _ in self.seen if isinstance(message, kind)]

    def saved(self) -> list[int]:
        """The epochs of the states on the disk."""
        return [
            int(file.stem.removeprefix("epoch-")) for file in self.home.snapshots_folder.rglob("epoch-*.safetensors")
        ]


@pytest.fixture
def stay(practice: str, tmp_path: Path) -> Iterator[Stay]:
    home = Home(tmp_path / "home")
    with bootstrap.hold(home):
        made = Stay(home)
        made.engine.start()
        made.engine.post(m.Join(bootstrap.catalogue(home).add(practice, consent=True)))
        yield made
        made.engine.post(m.Quit())
        assert made.engine.join(20)


@pytest.mark.timeout(900)
def test_a_worker_that_has_grown_is_replaced_between_two_epochs_and_nothing_is_lost(stay: Stay):
    def first_use_is_known() -> bool:
        worker = stay.engine.snapshot.worker
        return worker is not None and bool(worker.growth.first)

    wait_until(lambda: stay.named(m.WorkerJoined), JOIN_SECONDS)
    wait_until(lambda: stay.named(m.ContributionConfirmed) and first_use_is_known(), EPOCHS_SECONDS)
    (first,) = stay.engine.snapshot.worker.growth.first.values()  # type: ignore[union-attr]
    assert first.memory > GB / 10
    stay.leaked = 10 * GB
    wait_until(lambda: stay.named(m.WorkerExited), EPOCHS_SECONDS)
    saved = stay.saved()
    confirmed = len(stay.named(m.ContributionConfirmed))
    wait_until(lambda: len(stay.named(m.WorkerJoined)) == 2, JOIN_SECONDS)
    wait_until(lambda: len(stay.named(m.ContributionConfirmed)) > confirmed, EPOCHS_SECONDS)

    (ended,) = stay.named(m.WorkerExited)
    kinds = [type(message) for message, _ in stay.seen]
    end = kinds.index(m.WorkerExited)
    before = [message for message, _ in stay.seen[:end]]
    assert ended.code == 0
    assert not stay.named(m.WorkerFailed)
    assert not stay.notified
    assert Phase.RECOVERING not in {snapshot.phase for _, snapshot in stay.seen}
    assert stay.seen[end][1].phase is Phase.JOINING  # at once
    # nothing was computed for the next epoch, and every round has settled what it took
    last = [message for message in before if isinstance(message, m.WorkerProgress)][-1]
    assert (last.contribution, last.samples) == ("", 0)
    assert last.progress.epoch in saved
    lost = {message.reason for message in stay.named(m.ContributionLost)}
    assert not lost & {LEFT, STOPPED}
    assert len({message.peer_id for message in stay.named(m.WorkerJoined)}) == 1
    with bootstrap.ledger(stay.home) as ledger:
        settled = {row.id: row for row in ledger.contributions()}
        assert AFRESH in {change.reason for change in ledger.changes(0, 1e12)}
    assert {message.id for message in stay.named(m.ContributionConfirmed)} <= settled.keys()
