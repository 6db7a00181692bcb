"""A script trains in one swarm with a volunteer's worker, and with a stock hivemind peer, of a published project."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skep import training
from skep.adapters.storage import signing
from skep.adapters.storage.paths import make_run_folder
from skep.core.project.fields import key_text
from skep.core.session.messages import ContributionConfirmed, WorkerFailed
from skep.host.practice.swarm import PracticeFolder, practice_manifest, prepare_data, seed
from skep.recipes.registry import parse_manifest
from skep.training.plan import plan_of
from terminals import wait_until
from training_scripts import PATIENCE, running
from worker_peer import SkepPeer

STOCK = Path(__file__).parents[2] / "docs" / "stock_peer.py"
RUN_STOCK = """
import runpy, sys
from hivemind.p2p import P2P
P2P._UNIX_SOCKET_PREFIX = "/unix" + sys.argv[1] + "/h-"
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ALIKE = 0.02
"""The rounding of the compression, in parts of the distance that the parameters moved."""


def published(folder, addresses, sha256, **changes):
    """The path of a signed manifest of a project with small epochs."""
    body = practice_manifest(
        revision=1,
        publisher_key=key_text(signing.ensure_key(folder.key)),
        peers=addresses,
        index_address="http://127.0.0.1:1/index.json",
        index_sha256=sha256,
        now=datetime.now(UTC),
    )
    body["sync"]["target_batch_size"] = 512
    folder.manifest.write_text(json.dumps(body | changes))
    signing.sign_manifest(folder.manifest, folder.key)
    return folder.manifest


@pytest.fixture
def project(tmp_path):
    folder = PracticeFolder(tmp_path)
    index, sha256 = prepare_data(folder)
    with seed(folder, 0) as addresses:
        shard = folder.served / f"{index.shards[0].sha256}.safetensors"
        yield folder, index, published(folder, addresses, sha256), shard


def confirmed(line):
    return line["event"] == "epoch" and line["confirmed"] and line["peers"] == 1


def with_both_others(line):
    return line["event"] == "confirmed" and line["peers"] == 2


@pytest.mark.parametrize("name", ["project_script.py", "lightning_project_script.py"])
def test_a_script_and_a_volunteer_confirm_each_other(project, tmp_path, name):
    if name.startswith("lightning"):
        pytest.importorskip("lightning")
    folder, index, manifest, shard = project
    with (
        SkepPeer(folder, manifest.read_text(), index) as volunteer,
        running(tmp_path, name, project=str(manifest), shard=str(shard)) as script,
    ):
        assert script.until(confirmed)
        wait_until(lambda: any(message.peers == 1 for message in volunteer.all(ContributionConfirmed)), PATIENCE)
        assert not volunteer.all(WorkerFailed)


def run_stock(manifest, shard):
    """Let a stock peer train until its parameters are nearly those of another peer; its last line."""
    run_id, sockets = parse_manifest(manifest.read_bytes()).run_id, make_run_folder()
    command = [sys.executable, "-c", RUN_STOCK, sockets, STOCK, manifest, run_id, shard]
    try:
        stock = subprocess.run(
            [*map(str, command), "--epochs", "20", "--alike", str(ALIKE)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    finally:
        shutil.rmtree(sockets)
    assert stock.returncode == 0, stock.stderr[-2000:]
    return json.loads(stock.stdout.splitlines()[-1])


@pytest.mark.long
def test_a_script_and_a_stock_peer_have_equal_parameters(project, tmp_path):
    _, _, manifest, shard = project
    with running(tmp_path, "project_script.py", project=str(manifest), shard=str(shard)) as script:
        script.event("joined")
        last = run_stock(manifest, shard)
        assert last["difference"] < ALIKE * last["moved"]
        assert script.until(lambda line: line["event"] == "epoch" and line["confirmed"])


@pytest.mark.long
def test_a_trainer_a_volunteer_and_a_stock_peer_train_in_one_epoch(project, tmp_path):
    pytest.importorskip("lightning")
    folder, index, manifest, shard = project
    with (
        SkepPeer(folder, manifest.read_text(), index) as volunteer,
        running(tmp_path, "lightning_project_script.py", project=str(manifest), shard=str(shard)) as script,
    ):
        assert script.until(confirmed)
        last = run_stock(manifest, shard)
        assert last["difference"] < ALIKE * last["moved"]
        # averages of the volunteer's, the script's and the stock peer's samples, as each of the first two has seen them
        together = {message.epoch for message in volunteer.all(ContributionConfirmed) if message.peers == 2}
        assert together
        assert script.until(lambda line: with_both_others(line) and line["epoch"] in together)
        assert not volunteer.all(WorkerFailed)


def test_a_manifest_that_is_not_signed_builds_no_model(tmp_path):
    manifest = tmp_path / "project.json"
    manifest.write_text("{}")
    with pytest.raises(training.TrainingError, match="not signed"):
        training.build_model(manifest)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"membership": "invited"}, "invited computers only"),
        ({"expires": "2020-01-01T00:00:00Z"}, "expired"),
        ({"initial_state": "signed"}, "signed checkpoint"),
    ],
)
def test_a_project_that_scripts_cannot_join_is_refused_in_a_sentence(tmp_path, changes, words):
    folder = PracticeFolder(tmp_path)
    folder.served.mkdir()
    peer = "/ip4/127.0.0.1/tcp/31337/p2p/QmcgpsyWgH8Y8ajJz1Cu72KnS5uo2Aa2LpzU7kinSupNKC"
    manifest = published(folder, [peer], "0" * 64, **changes)
    with pytest.raises(training.TrainingError, match=words):
        training.build_model(manifest)


def test_the_parameters_of_a_project_have_its_order_whatever_the_groups_are(tmp_path):
    folder = PracticeFolder(tmp_path)
    folder.served.mkdir()
    peer = "/ip4/127.0.0.1/tcp/31337/p2p/QmcgpsyWgH8Y8ajJz1Cu72KnS5uo2Aa2LpzU7kinSupNKC"
    manifest = published(folder, [peer], "0" * 64)
    model = training.build_model(manifest)
    matrices = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim < 2]
    plan = plan_of(
        model,
        batch_size=8,
        run_id="",
        target_batch_size=0,
        optimizer=None,
        project=manifest,
        parameters=[{"params": others, "weight_decay": 0.0}, {"params": matrices}],
        scheduler=None,
        clip_norm=None,
        options={},
    )
    assert all(ours is theirs for ours, theirs in zip(plan.parameters, model.parameters(), strict=True))
    assert plan.run.run_id == parse_manifest(manifest.read_bytes()).run_id
    assert list(plan.seeds) == [peer]


def test_another_model_than_the_projects_is_refused_in_a_sentence(tmp_path):
    folder = PracticeFolder(tmp_path)
    folder.served.mkdir()
    peer = "/ip4/127.0.0.1/tcp/31337/p2p/QmcgpsyWgH8Y8ajJz1Cu72KnS5uo2Aa2LpzU7kinSupNKC"
    manifest = published(folder, [peer], "0" * 64)
    with pytest.raises(training.TrainingError, match="are not those that Practice swarm trains"):
        training.join(training.build_model(manifest).lm_head, project=manifest, batch_size=8)
