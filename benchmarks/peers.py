"""Peers to measure: skep's worker, a stock hivemind loop, a bare PyTorch loop; all real processes, one thread each.

A sample is counted, as `counted` of a progress event, when the step batch that it belongs to is in the gradients of an
epoch; skep's peers and stock ones alike. `samples` are those drawn by skep's peers, whose step batch may be unfinished.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from msgspec import structs

from skep.adapters.process.start import COMMAND, spawn
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.policy.allowance import GpuMemory
from skep.core.project.data import Shapes, ShardIndex, values
from skep.core.sandbox import Level
from skep.core.session import wire
from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    ContributionPending,
    FinishTraining,
    SetShare,
    ShardArrived,
    ShardWanted,
    StopTraining,
    ToWorker,
    WorkerJoined,
    WorkerOptions,
    WorkerPaused,
    WorkerProgress,
)
from skep.host.practice.swarm import LOOPBACK, PracticeFolder, practice_manifest, seed
from skep.host.shards.dataset import build_shards, library_sources
from skep.recipes.registry import parse_manifest

HERE = Path(__file__).parent
PATIENCE = 180.0
NO_KEY = "ed25519:" + "A" * 43 + "="
"""A placeholder for a publisher's key; the engine checks signatures before it passes a manifest to the worker."""
MODELS: dict[str, dict[str, int]] = {
    "0.45 M": {"layers": 2, "heads": 4, "width": 128, "sequence_length": 128},
    "0.52 M": {"layers": 1, "heads": 4, "width": 192, "sequence_length": 128},
    "3.3 M": {"layers": 4, "heads": 4, "width": 256, "sequence_length": 128},
    "22 M": {"layers": 7, "heads": 8, "width": 512, "sequence_length": 128},
    "126 M": {"layers": 10, "heads": 16, "width": 1024, "sequence_length": 16},
}


@dataclass(frozen=True)
class Swarm:
    """What its peers share: the manifest (as a dict), the shards, their folder, a seed peer's addresses."""

    folder: Path
    manifest: dict[str, Any]
    index: ShardIndex
    seeds: list[str]

    @property
    def options(self) -> dict[str, Any]:
        """The options for the loops that read no manifest."""
        recipe = self.manifest["recipe"]
        return {
            "model": recipe["model"] | {"sequence_length": recipe["sequence_length"]},
            "shard": str(self.folder / "shards" / f"{self.index.shards[0].sha256}.safetensors"),
            "peers": self.seeds,
            "run_id": parse_manifest(json.dumps(self.manifest).encode()).run_id,
            "sync": self.manifest["sync"],
            "optimizer": self.manifest["optimizer"],
        }

    @property
    def shapes(self) -> Shapes:
        """Of the tensors that are trained."""
        return parse_manifest(json.dumps(self.manifest).encode()).recipe.trained

    @property
    def parameters(self) -> int:
        return values(self.shapes)


@contextmanager
def swarm(folder: Path, model: str, **sync: Any) -> Iterator[Swarm]:
    """A seed peer and shards for a model of MODELS, with changes to the practice manifest's `sync`."""
    folder.mkdir(parents=True, exist_ok=True)
    with seed(PracticeFolder(folder), 0) as addresses:
        yield described(folder, addresses, model, sync)


def described(folder: Path, seeds: list[str], model: str, sync: dict[str, Any]) -> Swarm:
    """The same without a seed peer of its own; cuts the shards into `folder`."""
    shape = dict(MODELS[model])
    length = shape.pop("sequence_length")
    _, sha256, index = build_shards(
        library_sources(),
        folder / "shards",
        sequence_length=length,
        samples_per_shard=512,
        max_shards=4,
        held_out_samples=32,
    )
    manifest = practice_manifest(
        revision=1,
        publisher_key=NO_KEY,
        peers=seeds,
        index_address="https://example.org/index.json",
        index_sha256=sha256,
        now=datetime.now(UTC),
    )
    manifest["recipe"]["model"] |= shape
    manifest["recipe"]["sequence_length"] = length
    manifest["sync"] |= sync
    return Swarm(folder, manifest, index, seeds)


class Peer:
    """A process that prints JSON events; ended with its whole process tree. `history` are all its events so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.begun = time.monotonic()
        self.history: list[dict[str, Any]] = []
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            for event in self._understand(line):
                self.history.append(event)
                self._events.put(event)
        self._events.put(None)

    def _understand(self, line: bytes) -> list[dict[str, Any]]:
        return [json.loads(line)]

    def wait_for(self, condition: Callable[[dict[str, Any]], bool], within: float = PATIENCE) -> dict[str, Any]:
        """The next event that meets the condition. Raises TimeoutError, or RuntimeError when the peer has ended."""
        deadline = time.monotonic() + within
        while True:
            try:
                event = self._events.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{type(self).__name__}: nothing within {within:g} s") from None
            if event is None:
                raise RuntimeError(f"{type(self).__name__} ended")
            if condition(event):
                return event

    def latest(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The last event so far that meets the condition, otherwise the next one."""
        found = self.wait_for(condition)
        while not self._events.empty():
            event = self._events.get()
            if event is None:
                raise RuntimeError(f"{type(self).__name__} ended")
            found = event if condition(event) else found
        return found

    def rate(self, seconds: float) -> float:
        """Samples trained per second over at least this many seconds, from now on."""
        first = self.wait_for(is_progress)
        return self.rate_since(first, seconds)

    def rate_since(self, first: dict[str, Any], seconds: float) -> float:
        last = self.wait_for(lambda event: is_progress(event) and event["seconds"] - first["seconds"] >= seconds)
        return float((last["samples"] - first["samples"]) / (last["seconds"] - first["seconds"]))

    def family(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def memory(self) -> int:
        """Bytes of the whole process tree, shared pages divided among the processes that share them (proportional set
        size).
        """
        total = 0
        for process in self.family():
            try:
                total += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
        return total

    def ask_to_stop(self) -> None:
        self.process.terminate()

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.history if event["event"] == name]

    def stop(self, ask: Callable[[], None] | None = None) -> float:
        """Ask it to stop, by default as `ask_to_stop`; returns the seconds until no process of it is left."""
        family = self.family()
        begun = time.monotonic()
        (ask or self.ask_to_stop)()
        while any(alive(process) for process in family) and time.monotonic() - begun < PATIENCE:
            self.process.poll()
            time.sleep(0.02)
        took = time.monotonic() - begun
        self.kill()
        return took

    def kill(self) -> None:
        for process in self.family() if self.process.poll() is None else []:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


def is_progress(event: dict[str, Any]) -> bool:
    return bool(event["event"] == "progress")


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class LoopPeer(Peer):
    """`stock_peer.py` or `bare_loop.py`, with the settings of memory and threads with which skep's worker is started."""

    def __init__(self, script: str, shared: Swarm, batch: int, **more: str) -> None:
        options = shared.folder / f"options-{time.monotonic_ns()}.json"
        options.write_text(json.dumps(shared.options | {"batch": batch} | more))
        log = (shared.folder / "stock.log").open("ab")
        super().__init__(
            subprocess.Popen(
                [sys.executable, HERE / script, options],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
            )
        )
        log.close()


class SkepPeer(Peer):
    """skep's worker; its shards are passed immediately, as the engine does.

    `place` is a command that runs it elsewhere, where it accepts connections at `host`.
    """

    def __init__(
        self,
        shared: Swarm,
        share: float = 1.0,
        *,
        nice: int = 19,
        threads: int = 1,
        device: str = "cpu",
        place: Sequence[str] = (),
        host: str = LOOPBACK,
        command: Sequence[str] = COMMAND,
        sandbox: Level = Level.BEST,
    ) -> None:
        self._shared, self._taken = shared, 0
        self._run_folder = make_run_folder()
        process = spawn([*place, *command], self._run_folder, threads)
        threading.Thread(target=self._note, args=(process,), daemon=True).start()
        self.joined: dict[str, Any] = {}
        super().__init__(process)
        self._tell(
            WorkerOptions(
                manifest=json.dumps(shared.manifest),
                index=shared.index,
                identity_path=str(self._identity()),
                shards_folder=str(shared.folder / "shards"),
                run_folder=str(self._run_folder),
                share=share,
                device=device,
                threads=threads,
                nice=nice,
                listen_host=host,
                sandbox=sandbox,
            )
        )

    def set_share(self, share: float, *, present: bool = False, memory: GpuMemory = GpuMemory.KEEP) -> None:
        self._tell(SetShare(share, present, memory))

    def _note(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr, (self._shared.folder / "skep.log").open("ab") as log:
            shutil.copyfileobj(process.stderr, log)

    def _identity(self) -> Path:
        identity = FileIdentity(self._run_folder / "peer.id")
        identity.peer_id  # noqa: B018 - makes the key
        return identity.path

    def _tell(self, message: ToWorker) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(wire.encode(message))

    def _understand(self, line: bytes) -> list[dict[str, Any]]:
        message = wire.decode_from_worker(line)
        if isinstance(message, ShardWanted):
            self._tell(
                ShardArrived(message.sha256, str(self._shared.folder / "shards" / f"{message.sha256}.safetensors"))
            )
        elif isinstance(message, WorkerJoined):
            self.joined = structs.asdict(message)
            return [{"event": "joined", "seconds": time.monotonic()}]
        elif isinstance(message, WorkerPaused):
            return [{"event": "paused"} | structs.asdict(message)]
        elif isinstance(message, ContributionLost):
            return [{"event": "lost"} | structs.asdict(message)]
        elif isinstance(message, ContributionConfirmed):
            return [{"event": "confirmed"} | structs.asdict(message)]
        elif isinstance(message, ContributionPending):
            self._taken += message.samples
            return [{"event": "contribution", "epoch": message.epoch, "samples": message.samples}]
        elif isinstance(message, WorkerProgress):
            progress, batch = message.progress, self.joined["step_batch"]
            event = {
                "event": "progress",
                "samples": message.position,
                "counted": self._taken + message.samples // batch * batch,
                "epoch": progress.epoch,
                "peers": progress.peers,
                "seconds": time.monotonic(),
                "received": progress.bytes_received,
                "sent": progress.bytes_sent,
                "loss": progress.loss,
                "rate": progress.samples_per_second,
                "asked": progress.share_asked,
            }
            return [{"event": "counted"}, event] if event["counted"] else [event]
        return []

    def ask_to_stop(self) -> None:
        self._tell(StopTraining())

    def ask_to_finish(self) -> None:
        """It goes when the round that takes what it has computed is over."""
        self._tell(FinishTraining())

    def kill(self) -> None:
        super().kill()
        shutil.rmtree(self._run_folder, ignore_errors=True)
