"""A practice swarm on this computer: a seed peer, training peers and a file server as processes, on loopback.

It is joined like any project: a signed manifest, shards over HTTP by hash, real averaging. It does not use the engine,
the ledger or the control socket of its home.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from skep.adapters.net.tcp_port import check_seed_port
from skep.adapters.process.own_processes import practice_noted
from skep.adapters.process.worker import WorkerProcess
from skep.adapters.storage import signing
from skep.adapters.storage.files import atomic_write
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.logs import open_log
from skep.adapters.storage.paths import Below, make_run_folder
from skep.core.errors import SkepError
from skep.core.project import links
from skep.core.project.data import ShardIndex
from skep.core.project.fields import key_text
from skep.core.session.messages import (
    Message,
    ShardArrived,
    ShardWanted,
    WorkerExited,
    WorkerFailed,
    WorkerFinished,
    WorkerOptions,
)
from skep.core.text import Text
from skep.host.server.file_server import serving
from skep.host.server.peer_process import PeerProcess
from skep.host.shards.dataset import build_shards, library_sources
from skep.language.translator import ENGLISH, translator

SEQUENCE_LENGTH: Final = 128
LOOPBACK: Final = "127.0.0.1"
SAMPLES_PER_SHARD: Final = 1024
SHARDS: Final = 24
HELD_OUT_SAMPLES: Final = 256
RESTART_SECONDS: Final = 3.0
SHARE: Final = 0.3
"""Share of each training peer: enough to average with, and most of the processor is left for the user's peer."""


@dataclass(frozen=True)
class PracticeFolder:
    """The folder of a home's practice swarm; the key is kept, so that a joined project can be updated."""

    root: Path

    key = Below("publisher.key")
    served = Below("served")
    manifest = Below("served/practice.json")

    def identity(self, name: str) -> FileIdentity:
        return FileIdentity(self.root / f"{name}.id")

    def next_revision(self) -> int:
        """One more than at the last start, since the peers' addresses differ each time."""
        counter = self.root / "revision"
        revision = int(counter.read_text()) + 1 if counter.exists() else 1
        atomic_write(counter, str(revision).encode(), mode=0o600)
        return revision


def run(
    root: Path,
    *,
    peers: int,
    port: int,
    announce: Callable[[Path, str], None],
    wait: Callable[[], object],
    pack: Path | None = None,
) -> None:
    """Run the swarm in the folder `root` until `wait` returns.

    `announce` is called with the path of the signed manifest that joins it, and with the link that does. `port` is the
    seed's TCP port, 0 for a free one. `pack` is the folder of the compute pack to use. Raises SkepError.
    """
    check_seed_port(LOOPBACK, port, Text("peer_process.choose_another_port"))
    folder = PracticeFolder(root)
    folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as started:
        started.enter_context(practice_noted(folder.root))
        index, sha256 = prepare_data(folder)
        served = started.enter_context(serving(folder.served))
        addresses = started.enter_context(seed(folder, port, pack))
        manifest, key = publish(folder, addresses, f"{served}/index.json", sha256)
        trainers = [Trainer(folder, number, manifest, index, pack) for number in range(peers)]
        for trainer in trainers:
            started.callback(trainer.close)
            trainer.start()
        announce(folder.manifest, links.link_to(f"{served}/{folder.manifest.name}", key))
        wait()
        for trainer in trainers:
            trainer.stop()


def prepare_data(folder: PracticeFolder) -> tuple[ShardIndex, str]:
    """Cut this interpreter's standard library into shards, into the served folder. Returns the index and its sha256."""
    shutil.rmtree(folder.served, ignore_errors=True)
    _, sha256, index = build_shards(
        library_sources(),
        folder.served,
        sequence_length=SEQUENCE_LENGTH,
        samples_per_shard=SAMPLES_PER_SHARD,
        max_shards=SHARDS,
        held_out_samples=HELD_OUT_SAMPLES,
    )
    return index, sha256


@contextlib.contextmanager
def seed(folder: PracticeFolder, port: int, pack: Path | None = None) -> Iterator[list[str]]:
    """A running seed peer process; its addresses."""
    arguments = ["--host", LOOPBACK, "--port", str(port), "--identity", str(folder.identity("seed").path)]
    process = PeerProcess(arguments, folder.root / "seed.log", pack)
    try:
        yield process.start()
    finally:
        process.end()


def publish(folder: PracticeFolder, addresses: list[str], index_address: str, sha256: str) -> tuple[str, bytes]:
    """Write and sign the manifest; returns its text, and its publisher's raw public key."""
    key = signing.ensure_key(folder.key)
    text = json.dumps(
        practice_manifest(
            revision=folder.next_revision(),
            publisher_key=key_text(key),
            peers=addresses,
            index_address=index_address,
            index_sha256=sha256,
            now=datetime.now(UTC),
        ),
        indent=2,
    )
    atomic_write(folder.manifest, text.encode(), mode=0o600)
    signing.sign_manifest(folder.manifest, folder.key)
    return text, key


def practice_manifest(
    *,
    revision: int,
    publisher_key: str,
    peers: Sequence[str],
    index_address: str,
    index_sha256: str,
    now: datetime,
) -> dict[str, Any]:
    """The manifest as the JSON object that is written and signed. `now` is aware; it expires a week later."""
    return {
        "format": 1,
        "id": "practice",
        "revision": revision,
        "title": "Practice swarm",
        "summary": "A small model on this computer that learns to write Python. Nothing leaves the machine.",
        "publisher": {"name": "This computer", "key": publisher_key},
        "homepage": "",
        "license": "Apache-2.0",
        "expires": (now + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "membership": "open",
        "initial_state": "swarm",
        "peers": list(peers),
        "recipe": {
            "name": "causal-lm",
            "model": {"type": "gpt2", "layers": 2, "heads": 4, "width": 128, "vocabulary": 256},
            "sequence_length": SEQUENCE_LENGTH,
            "tokenizer": "bytes",
            "seed": 0,
        },
        "optimizer": {
            "name": "adamw",
            "learning_rate": 3e-3,
            "betas": [0.9, 0.95],
            "weight_decay": 0.01,
            "clip_norm": 1.0,
        },
        "schedule": {"kind": "constant", "warmup_epochs": 4, "total_epochs": 1_000_000},
        "sync": {
            "target_batch_size": 1024,
            "offload_optimizer": True,
            "reuse_grad_buffers": True,
            "delay_optimizer_step": True,
            "delay_grad_averaging": False,
            "delay_state_averaging": True,
            "grad_compression": "float16",
            "state_compression": "float16",
            "load_compression": "none",
            "size_adaptive_threshold": 65537,
            "powersgd": None,
            "average_state_every": 1,
            "mode": "global",
            "matchmaking_seconds": 3,
            "averaging_timeout_seconds": 20,
        },
        "precision": "auto",
        "activation_checkpointing": "auto",
        "data": {"index": index_address, "sha256": index_sha256},
        "needs": {"memory_gb": 1, "vram_gb": 1, "disk_gb": 0.1, "upload_mbit": 1},
    }


class Trainer:
    """One training peer of the practice swarm: skep's own worker, with shards from the served folder."""

    def __init__(
        self, folder: PracticeFolder, number: int, manifest: str, index: ShardIndex, pack: Path | None = None
    ) -> None:
        self._folder, self._pack = folder, pack
        self._changing = threading.Lock()
        self._stopping = self._finished = False
        self._options = WorkerOptions(
            manifest=manifest,
            index=index,
            listen_host=LOOPBACK,
            share=SHARE,
            device="cpu",
            threads=1,
            shards_folder=str(folder.served),
        )
        self._name = f"peer{number}"
        self._worker: WorkerProcess | None = None
        self._restart: threading.Timer | None = None

    def start(self) -> None:
        """Start its worker, unless `stop` was called. Raises SkepError."""
        identity = self._folder.identity(self._name)
        with self._changing:
            if self._stopping:
                return
            self._worker = WorkerProcess(
                self._hear,
                registry_file=self._folder.root / f"{self._name}.worker",
                make_run_folder=make_run_folder,
                stderr_log=open_log(self._folder.root, self._name),
                pack=lambda: self._pack,
            )
            self._worker.start(structs.replace(self._options, identity_path=str(identity.path)))

    def stop(self) -> None:
        """Ask it to leave; returns immediately."""
        with self._changing:
            self._stopping = True
            if self._restart:
                self._restart.cancel()
            if self._worker:
                self._worker.stop()

    def close(self) -> None:
        """Return when nothing of it is left."""
        self.stop()
        if self._worker:
            self._worker.close()

    def _hear(self, message: Message) -> None:
        if isinstance(message, ShardWanted) and self._worker:
            path = self._folder.served / f"{message.sha256}.safetensors"
            self._worker.tell(ShardArrived(message.sha256, str(path)))
        elif isinstance(message, WorkerFinished):
            self._finished = True
        elif isinstance(message, WorkerFailed):
            print(f"{self._name}: {_say(message.problem.title)}", file=sys.stderr)  # noqa: T201 - operator's terminal
        elif isinstance(message, WorkerExited) and not self._finished:
            self._start_again_later()

    def _start_again_later(self) -> None:
        with self._changing:
            if not self._stopping:
                self._restart = threading.Timer(RESTART_SECONDS, self._start_again)
                self._restart.daemon = True
                self._restart.start()

    def _start_again(self) -> None:
        try:
            self.start()
        except SkepError as error:
            print(f"{self._name}: {_say(error.title)}", file=sys.stderr)  # noqa: T201 - the operator's terminal
            self._start_again_later()


def _say(message: Text) -> str:
    """The text in English, the language of the practice swarm's log."""
    return translator(ENGLISH).say(message)
