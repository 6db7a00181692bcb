"""The part `hostile`: attacks by a process with stock hivemind alone, on three workers, a newcomer, a seed and its keeper.

The workers are real ones and train a tiny model in an open run, whose seed keeps its state. While one attack after the
other runs, a newcomer joins. Measured of each: whether every process of the swarm lives on, how much memory it took, how
soon the newcomer trained and each worker had a contribution confirmed, how large epochs were that ended meanwhile, and how
much of each was lost.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
from report import Row

from families import kill, lives
from faults.places import own_folder
from faults.rows import Measured, Part
from manifests import raw
from skep.adapters.storage.identity import FileIdentity
from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    StopTraining,
    WorkerFailed,
    WorkerJoined,
)
from skep.host.server.peer_process import PeerProcess
from skep.recipes.registry import open_recipe, parse_manifest
from worker_pipes import TINY, PipedWorker, cut_shards

COUNT = 80
TARGET = 49152
"""Samples of an epoch, which takes about half a minute: peers see its end some tenths of a second late or early."""
FIRST_TARGET = 512
"""That of rows that do not say."""
SETTLED = (ContributionConfirmed, ContributionLost)
RUN = {"id": "attacked", "schedule__total_epochs": 1_000_000}
SHARE = 0.15
"""Low enough for two cores: a rate that others do not know yet makes an epoch longer or shorter."""
PEERS = 3
SECONDS = 60.0
"""How long an attack lasts."""
START_SECONDS, END_SECONDS = 180.0, 90.0
CONFIRMED_SECONDS, JOIN_SECONDS, MEMORY, SIZE, COST = 60.0, 60.0, 256.0, 0.05, 1
"""The bounds: seconds, MB, parts of an epoch's target, and epochs that are mostly lost."""
LOOK_SECONDS = 1.0
LOG_CHARACTERS = 2_000
"""Of a worker's log that a row keeps."""


class Swarm:
    """The run that is attacked."""

    def __init__(
        self, folder: Path, ending: contextlib.ExitStack, seconds: float = SECONDS, samples: int = TARGET
    ) -> None:
        """`seconds`: how long an attack lasts; `samples` of an epoch."""
        self._seconds, self.samples = seconds, samples
        self._run = RUN | {"sync__target_batch_size": samples}
        self.folder, self._index = folder, cut_shards(folder)
        manifest = raw(**(TINY | self._run))
        (folder / "run.json").write_bytes(manifest)
        self._manifest = parse_manifest(manifest)
        identity = FileIdentity(folder / "seed.id")
        arguments = ["--identity", str(identity.path), "--manifest", str(folder / "run.json"), "--every", "2"]
        self.seed = PeerProcess([*arguments, "--checkpoints", str(folder / "kept")], folder / "seed.log")
        ending.callback(self.seed.end)
        (self.address,) = self.seed.start()
        self._ids = [identity.peer_id]
        self._ending = ending
        self.workers = [self.join() for _ in range(PEERS)]
        for worker in self.workers:
            worker.wait_for(lambda message: isinstance(message, ContributionConfirmed), START_SECONDS)

    def join(self) -> PipedWorker:
        worker = PipedWorker(self.folder, self._index)
        self._ending.callback(worker.close)
        worker.start([self.address], share=SHARE, **self._run)
        return worker

    @property
    def target(self) -> dict[str, Any]:
        ids = [FileIdentity(self.folder / f"{worker.process.pid}.id").peer_id for worker in self.workers]
        model = open_recipe(self._manifest.recipe).build()
        return {
            "address": self.address,
            "run_id": self._manifest.run_id,
            "peers": [*self._ids, *ids],
            "shapes": [tuple(each.shape) for each in model.parameters() if each.requires_grad],
            "target_batch_size": self.samples,
            "epoch": max(message.epoch for worker in self.workers for message in worker.all(ContributionConfirmed)) + 1,
            "seconds": self._seconds,
        }

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Each peer's process tree."""
        seed = self.seed._process  # noqa: SLF001 - its users need no process
        assert seed is not None
        roots = {"seed": seed.pid} | {f"worker {n}": w.process.pid for n, w in enumerate(self.workers)}
        return {name: tree(pid) for name, pid in roots.items()}


def tree(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


class Watch:
    """The largest memory of each peer, proportional set size in MB, looked at every second."""

    def __init__(self, swarm: Swarm) -> None:
        self._swarm, self._over = swarm, threading.Event()
        self.most: dict[str, float] = defaultdict(float)
        self._look()
        self.before = dict(self.most)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        for name, processes in self._swarm.processes().items():
            used = 0.0
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    used += process.memory_full_info().pss / 1e6
            self.most[name] = max(self.most[name], used)

    def end(self) -> float:
        """The most by which a peer grew."""
        self._over.set()
        self._thread.join()
        return max(self.most[name] - self.before[name] for name in self.before)


def measure(numbers: range) -> Iterator[Measured]:
    names, left = list(attacks()), deque(numbers)
    while left:
        with own_folder() as folder, contextlib.ExitStack() as ending:
            swarm, ended = Swarm(folder, ending), False
            while left and not ended:
                number = left.popleft()
                row = attacked(swarm, names[number % len(names)])
                ended = bool(row["ended"])  # the next attack has a new swarm
                yield {"number": number} | row


def attacks() -> dict[str, dict[str, Any]]:
    """Their names, with what each declares: see `attacks`."""
    done = subprocess.run([sys.executable, "-m", "attacks"], env=environ(), capture_output=True, check=True)
    return dict(json.loads(done.stdout))


def environ() -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "HIVEMIND_MEMORY_SHARING_STRATEGY": "file_descriptor",
    }


def attacked(swarm: Swarm, name: str) -> Measured:
    before = swarm.processes()
    settled = [len(worker.all(*SETTLED)) for worker in swarm.workers]
    watch, begun = Watch(swarm), time.monotonic()
    with attacking(swarm, name) as wait:
        newcomer = swarm.join()
        peers = [*swarm.workers, newcomer]
        joined = seconds_until(lambda: bool(newcomer.all(WorkerJoined)), JOIN_SECONDS)
        said = wait()
    over, last = time.monotonic(), [len(worker.all(ContributionConfirmed)) for worker in swarm.workers]
    confirmed = seconds_until(
        lambda: all(
            len(worker.all(ContributionConfirmed)) > count for worker, count in zip(swarm.workers, last, strict=True)
        ),
        CONFIRMED_SECONDS + 30.0,
    )
    books = epochs(peers, settled)
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        newcomer.tell(StopTraining())
        newcomer.wait_gone(END_SECONDS)
    newcomer.close()
    grown, ended = watch.end(), dead(before)
    return {
        "attack": name,
        "said": said,
        "ended": ended,
        "log": [last_words(each) for each in swarm.workers] if ended or confirmed is None else [],
        "joined": joined,
        "confirmed": confirmed,
        "memory": round(grown, 1),
        "epochs": [computed for computed, _ in books],
        "lost": [lost for _, lost in books],
        "target": swarm.samples,
        "seconds": round(over - begun, 1),
    }


def last_words(worker: PipedWorker) -> str:
    """The end of its log, and why it has failed."""
    return f"{worker.words()[-LOG_CHARACTERS:]}{worker.all(WorkerFailed)}"


def dead(before: dict[str, list[psutil.Process]]) -> list[str]:
    """Peers of which a process that was there before is gone."""
    return sorted(name for name, processes in before.items() if not all(map(lives, processes)))


@contextlib.contextmanager
def attacking(swarm: Swarm, name: str) -> Iterator[Callable[[], dict[str, int]]]:
    """A hostile process; the call waits for its end, and returns what it says."""
    with (swarm.folder / "attack.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "attacks", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environ(),
            start_new_session=True,
        )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(swarm.target).encode())
    process.stdin.close()
    process.stdout.readline()  # it begins, or has ended

    def ended() -> dict[str, int]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS + START_SECONDS)
        said = process.stdout.read() if process.stdout and process.poll() == 0 else b"{}"
        return dict(json.loads(said))

    family: list[psutil.Process] = []
    try:
        yield ended
    finally:
        family = tree(process.pid)
        kill(family)
        process.wait()
        process.stdout.close()


def seconds_until(condition: Callable[[], bool], within: float) -> float | None:
    """None if it is not met in that time."""
    begun = time.monotonic()
    while time.monotonic() - begun < within:
        if condition():
            return round(time.monotonic() - begun, 1)
        time.sleep(0.1)
    return None


def epochs(peers: list[PipedWorker], settled: list[int]) -> list[tuple[int, int]]:
    """The samples that all peers brought to the round of each epoch that has ended for every worker since `settled`.

    And those of them that were lost. The last of `peers` is the newcomer; before its first epoch there were no others, and
    after its last one its samples are not known yet.
    """
    brought: dict[int, int] = defaultdict(int)
    lost: dict[int, int] = defaultdict(int)
    seen: dict[int, int] = defaultdict(int)
    for worker, count in itertools.zip_longest(peers, settled, fillvalue=0):
        for message in worker.all(*SETTLED)[count:]:
            seen[message.epoch] += worker is not peers[-1]
            brought[message.epoch] += message.samples
            lost[message.epoch] += message.samples * isinstance(message, ContributionLost)
    last = max((message.epoch for message in peers[-1].all(*SETTLED)), default=math.inf)
    whole = [epoch for epoch, workers in sorted(seen.items()) if workers == PEERS and epoch <= last]
    return [(brought[epoch], lost[epoch]) for epoch in whole]


def size(row: Measured) -> float | None:
    """The mean of the epochs that ended, in parts of their target; None if none has ended."""
    return mean(row["epochs"]) / row.get("target", FIRST_TARGET) if row["epochs"] else None


def cost(row: Measured) -> int:
    """Epochs of which more than half was lost."""
    return sum(lost > brought / 2 for brought, lost in zip(row["epochs"], row.get("lost", ()), strict=False))


def judged(rows: list[Measured]) -> list[Row]:
    def of(name: str, missing: float) -> list[float]:
        return [missing if row[name] is None else float(row[name]) for row in rows]

    ended = [float(len(row["ended"])) for row in rows]
    joined, confirmed = of("joined", JOIN_SECONDS + 1), of("confirmed", CONFIRMED_SECONDS + 1)
    memory = of("memory", 0.0)
    sized = [row for row in rows if "target" in row]  # earlier ones had epochs too short to have a size
    off = [round(abs(found - 1), 3) for row in sized if (found := size(row)) is not None]
    return [
        Row("attacks", len({row["attack"] for row in rows}), "", None, [1.0] * len(rows), least=COUNT),
        Row(
            "attacks that did something",
            sum(row["said"].get("tried", 0) > 0 for row in rows),
            "",
            None,
            [],
            least=len(rows),
        ),
        Row("peers with an ended process", sum(ended), "", 0, ended),
        Row("newcomer joined", max(joined, default=0.0), "s", JOIN_SECONDS, joined),
        Row("confirmed afterwards", max(confirmed, default=0.0), "s", CONFIRMED_SECONDS, confirmed),
        Row("memory more than before", max(memory, default=0.0), "MB", MEMORY, memory),
        Row("attacks during which an epoch ended", len(off), "", None, [], least=len(sized)),
        Row("mean epoch of an attack off its target", max(off, default=0.0), "of the target", SIZE, off),
        Row(
            "epochs that an attack cost", max(map(cost, rows), default=0), "", COST, [float(cost(row)) for row in rows]
        ),
    ]


PART = Part("hostile", "attacks by a stock peer", COUNT, measure, judged)
