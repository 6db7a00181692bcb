"""A worker of skep in a practice swarm, without an engine."""

import logging

from skep.adapters.process.worker import WorkerProcess
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.session.messages import ShardArrived, ShardWanted, WorkerOptions


class SkepPeer:
    """A skep worker without an engine: hands over shards, and collects its messages."""

    def __init__(self, folder, manifest, index):
        self.said = []
        self._folder = folder
        self._start = WorkerOptions(
            manifest=manifest,
            index=index,
            identity_path=str(FileIdentity(folder.root / "skep.id").path),
            shards_folder=str(folder.served),
            device="cpu",
            threads=1,
            share=0.4,
        )
        self._worker = WorkerProcess(
            self._hear,
            registry_file=folder.root / "skep.worker",
            make_run_folder=make_run_folder,
            stderr_log=logging.getLogger("worker"),
        )

    def _hear(self, message):
        if isinstance(message, ShardWanted):
            path = self._folder.served / f"{message.sha256}.safetensors"
            self._worker.tell(ShardArrived(message.sha256, str(path)))
        self.said.append(message)

    def __enter__(self):
        self._worker.start(self._start)
        return self

    def __exit__(self, *_):
        self._worker.close()

    def all(self, kind):
        return [message for message in self.said if isinstance(message, kind)]
