"""`skep host` as a person runs it: seed, shards, checkpoints, and a swarm that comes back after the last peer has left."""

import hashlib
import http.client
import os
import shutil
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from manifests import raw, signed
from skep.adapters import signing
from skep.core.manifest import parse
from skep.core.messages import StopTraining, WorkerProgress
from skep.core.model import DeviceKind
from skep.host.checkpoints import read
from skep.host.shard_builder import INDEX_NAME
from terminals import JOIN_SECONDS, Running, is_event, skep, wait_until
from worker_pipes import TINY, PipedWorker, cut_shards

EPOCH_SECONDS = 120
STOP_SECONDS = 3.0


def free_port():
    import socket

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


class Project:
    """A folder of shards, a publisher's key, and a manifest that names the host in `home`."""

    def __init__(self, folder):
        self.folder, self.home, self.data = folder, folder / "home", folder / "data"
        self.index = cut_shards(self.data)
        self.port, self.web_port = free_port(), free_port()
        code, said = skep(self.home, "host", "--address", "--port", str(self.port), "--announce", "127.0.0.1")
        assert code == 0
        self.peers = said["addresses"]
        self.key = signing.key_text(signing.ensure_key(folder / "publisher.key"))
        self.changes = TINY | {
            "id": "hosted",
            "peers": self.peers,
            "publisher__key": self.key,
            "data": {
                "index": f"http://127.0.0.1:{self.web_port}/index.json",
                "sha256": hashlib.sha256((self.data / INDEX_NAME).read_bytes()).hexdigest(),
            },
        }
        self.manifest = signed(folder, **{name: value for name, value in self.changes.items() if name != "publisher__key"})
        self.run_id = parse(self.manifest.read_bytes()).run_id
        self.checkpoints = self.home / "host" / "checkpoints" / self.run_id

    def host(self, *arguments):
        data = ["--data", str(self.data), "--web", str(self.web_port), "--every", "2", "--keep", "2"]
        return Running(self.home, "host", str(self.manifest), *data, *arguments)

    def newest(self):
        return max(self.checkpoints.glob("epoch-*.safetensors"), default=None)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("project"))


def test_a_swarm_whose_last_peer_has_left_goes_on_from_the_checkpoint(project, make_dhts, tmp_path):
    host = project.host()
    workers = []
    try:
        host.wait_for(is_event("started"), JOIN_SECONDS)
        host.wait_for(is_event("keeping"), JOIN_SECONDS)
        for _ in range(3):
            workers.append(PipedWorker(tmp_path, project.index, serve=True))
            shutil.copytree(project.data, tmp_path, dirs_exist_ok=True)
            workers[-1].start(**project.changes)
        host.wait_for(lambda event: event["event"] == "swarm" and event["peers"] == 3, EPOCH_SECONDS)
        host.wait_for(lambda event: event["event"] == "checkpoint" and event["epoch"] >= 3, EPOCH_SECONDS)
        for worker in workers:
            worker.tell(StopTraining())
        for worker in workers:
            worker.wait_gone()
        gone = len(host.events)
        wait_until(lambda: any(event.get("peers") == 0 for event in host.events[gone:] if event["event"] == "swarm"), 60)
        print([e for e in host.events])
    finally:
        for worker in workers:
            worker.close()
        begun = time.monotonic()
        print("end", host.finish(), time.monotonic() - begun)
    assert 0
