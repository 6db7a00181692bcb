"""The way of a project to signed checkpoints, as the authors' guide has it: with `skep join` and `skep project checkpoint`."""

import hashlib
import json

import pytest

from manifests import signed
from skep.core.project.shards import shard_name
from skep.host.practice.swarm import PracticeFolder, seed
from skep.host.server.file_server import serving
from terminals import JOIN_SECONDS, Running, devote, is_event, skep
from worker_pipes import TINY, cut_shards

pytestmark = pytest.mark.timeout(900)
EPOCH_SECONDS = 240


@pytest.fixture
def publish(tmp_path, tmp_path_factory):
    """Signs the next revision of a project whose data is served from the folder `served`, with a seed."""
    served, revisions = tmp_path / "served", iter(range(1, 9))
    cut_shards(served)
    sha256 = hashlib.sha256((served / "index.json").read_bytes()).hexdigest()
    practice = PracticeFolder(tmp_path_factory.mktemp("seed"))
    with serving(served) as address, seed(practice, 0) as seeds:
        common = TINY | {
            "peers": list(seeds),
            "sync__target_batch_size": 64,
            "data": {"index": f"{address}/index.json", "sha256": sha256},
            "needs": {"memory_gb": 0, "vram_gb": 0, "disk_gb": 0, "upload_mbit": 0},
        }
        yield lambda state: signed(tmp_path, initial_state=state, revision=next(revisions), **common)


@pytest.fixture
def join(tmp_path):
    """Joins from a manifest, in the home of this name."""
    running = []

    def join(name, manifest):
        home = devote(tmp_path / name)
        running.append(Running(home, "join", str(manifest)))
        return running[-1]

    yield join
    for each in running:
        if each.process.poll() is None:
            each.finish(within=60)


def test_a_run_is_begun_by_its_publisher_and_joined_with_the_signed_checkpoint(publish, join, tmp_path):
    manifest = publish("swarm")
    publisher = join("publisher", manifest)
    publisher.wait_for(is_event("joined"), JOIN_SECONDS)
    publisher.wait_for(lambda event: event.get("epoch", 0) >= 1, EPOCH_SECONDS)
    # unlike Ctrl-C, that waits for the round and for the snapshot
    assert skep(publisher.home, "leave", within=120)[0] == 0
    assert publisher.end(within=120) == 0
    (snapshot,) = (tmp_path / "publisher" / "snapshots").rglob("epoch-*.safetensors")
    epoch = int(snapshot.stem.removeprefix("epoch-"))

    manifest = publish("signed")
    refused = join("volunteer", manifest)
    told = refused.wait_for(is_event("problem"), JOIN_SECONDS)
    assert "begins with its publisher's signed checkpoint only, and there is none at" in told["title"]
    assert "skep project checkpoint" in told["hint"]
    assert refused.end(within=60) != 0

    sign = ("project", "checkpoint", str(manifest), str(snapshot), "--to", str(tmp_path / "served"))
    code, said = skep(tmp_path / "publisher", *sign, "--key", str(tmp_path / "publisher.key"))
    assert (code, said["epoch"]) == (0, epoch)
    volunteer = join("volunteer", manifest)
    joined = volunteer.wait_for(is_event("joined"), JOIN_SECONDS)
    assert joined["epoch"] >= epoch
    sha256 = hashlib.sha256(snapshot.read_bytes()).hexdigest()
    assert (tmp_path / "volunteer" / "cache" / shard_name(sha256)).read_bytes() == snapshot.read_bytes()
    assert json.loads((tmp_path / "volunteer" / "checkpoints" / "tiny-code-lm.checkpoint.json").read_text())
