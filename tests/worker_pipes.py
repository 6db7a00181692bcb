"""A worker without an engine: the pipes of a real `python -m skep.worker.main`, with its shards handed over."""

import secrets
import shutil
import threading
import time

import psutil

from families import alive, kill
from manifests import raw
from skep.adapters.process.start import COMMAND, spawn
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.session import wire
from skep.core.session.messages import ShardArrived, ShardWanted, WorkerOptions
from skep.host.shards.dataset import build_shards, library_sources

PATIENCE = 60
"""Seconds that a busy computer may take for a fast operation."""
SEQUENCE_LENGTH = 32
TINY = {
    "recipe__model": {"type": "gpt2", "layers": 1, "heads": 2, "width": 16, "vocabulary": 256},
    "recipe__sequence_length": SEQUENCE_LENGTH,
    "schedule": {"kind": "constant", "warmup_epochs": 0, "total_epochs": 1000},
    "sync__matchmaking_seconds": 2,
    "sync__averaging_timeout_seconds": 10,
    "sync__target_batch_size": 256,
}
"""Changes that make the example manifest quick to join and to train."""


def cut_shards(folder):
    """Create a few shards from this interpreter's library; returns their index."""
    _, _, index = build_shards(
        library_sources()[:60],
        folder,
        sequence_length=SEQUENCE_LENGTH,
        samples_per_shard=256,
        max_shards=4,
        held_out_samples=16,
    )
    return index


class PipedWorker:
    """One worker process and its messages. `serve` False withholds its shards, `reads_log` False closes its stderr."""

    def __init__(self, folder, index, *, serve=True, reads_log=True, command=COMMAND):
        self.folder, self.index, self.serve = folder, index, serve
        self.run_folder = make_run_folder()
        self.process = spawn(command, self.run_folder, 1)
        self.said, self.errors = [], []
        self.remains = []
        """What it left in its run folder. The folder itself is the engine's to remove: the sandbox protects the one above."""
        self._family = set()
        self._news = threading.Condition()
        self._threads = [threading.Thread(target=self._read, daemon=True)]
        if reads_log:
            self._threads.append(threading.Thread(target=self._note, daemon=True))
        else:
            self.process.stderr.close()
        for thread in self._threads:
            thread.start()

    def start(
        self,
        peers=(),
        share=1.0,
        listen_host="127.0.0.1",
        client_mode="automatic",
        snapshots="",
        known_peers="",
        device="cpu",
        threads=1,
        **changes,
    ):
        """The start message, for the example manifest with changes; in a new run unless `id` names one.

        A run that was just used still lists its peers for a while, and a newcomer would ask them for their state.
        """
        changes.setdefault("id", f"run-{secrets.token_hex(4)}")
        manifest = raw(**(TINY | ({"peers": list(peers)} if peers else {}) | changes)).decode()
        self.tell(
            WorkerOptions(
                manifest=manifest,
                index=self.index,
                identity_path=str(self._identity()),
                run_folder=str(self.run_folder),
                listen_host=listen_host,
                share=share,
                device=device,
                threads=threads,
                client_mode=client_mode,
                snapshots_folder=str(snapshots),
                snapshot_bytes_per_day=10**9,
                known_peers_folder=str(known_peers),
                shards_folder=str(self.folder),
            )
        )
        return self

    def _identity(self):
        identity = FileIdentity(self.folder / f"{self.process.pid}.id")
        identity.peer_id  # noqa: B018 - creates the key
        return identity.path

    def tell(self, message):
        self.write(wire.encode(message))

    def write(self, line):
        self.process.stdin.write(line)

    def hang_up(self):
        """Close the pipes, as when the front end dies."""
        self.process.stdin.close()

    def _read(self):
        for line in iter(self.process.stdout.readline, b""):
            message = wire.decode_from_worker(line)
            if isinstance(message, ShardWanted) and self.serve:
                self.tell(ShardArrived(message.sha256, str(self.folder / f"{message.sha256}.safetensors")))
            with self._news:
                self.said.append(message)
                self._news.notify_all()

    def _note(self):
        self.errors.extend(iter(self.process.stderr.readline, b""))

    def words(self):
        return b"".join(self.errors).decode()

    def wait_for(self, condition, within=PATIENCE):
        """The first past or future message that meets the condition."""
        deadline = time.monotonic() + within
        while True:
            ended = self.process.poll() is not None
            if ended:
                self._threads[0].join(PATIENCE)  # its last messages may not have been read yet
            with self._news:
                for message in self.said:
                    if condition(message):
                        return message
                assert not ended, self.words()[-3000:]
                left = deadline - time.monotonic()
                assert left > 0, f"not within {within} s; it said {self.said[-3:]}\n{self.words()[-2000:]}"
                self._news.wait(min(left, 0.2))

    def all(self, *kinds):
        with self._news:
            return [message for message in self.said if isinstance(message, kinds)]

    def look(self):
        """Add its current child processes to those that `left` checks."""
        self._family |= set(psutil.Process(self.process.pid).children(recursive=True))

    def wait_gone(self, within=PATIENCE):
        """Seconds until the process ended; it must end within `within`."""
        begun = time.monotonic()
        try:
            self.process.wait(within)
            self.remains = list(self.run_folder.glob("*"))
        finally:
            took = time.monotonic() - begun
            self.close()
        return took

    def left(self):
        """The processes seen by `look` that still run after it ended.

        A zombie that waits to be reaped by the init process does not count.
        """
        return alive(psutil.wait_procs(self._family, timeout=1.0)[1])

    def close(self):
        if self.process.poll() is None:
            self.look()
            self.process.kill()
            self.process.wait()
            kill(self._family)
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        shutil.rmtree(self.run_folder, ignore_errors=True)
