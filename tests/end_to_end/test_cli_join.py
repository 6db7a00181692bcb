"""`skep join` and the project verbs with manifests that are wrong, too big, outdated or unreachable."""

import json
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from skep.adapters.storage import signing
from skep.core.project.fields import key_text
from skep.core.sandbox import Guard
from skep.host.practice.swarm import SEQUENCE_LENGTH, practice_manifest
from skep.host.server.file_server import serving
from skep.host.shards.dataset import build_shards, library_sources
from terminals import SKEP, run_here

NOBODY = "/ip4/127.0.0.1/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


def skep(home, *arguments, within=60):
    return subprocess.run(
        [*SKEP, "--home", str(home.root), *arguments], capture_output=True, text=True, timeout=within, check=False
    )


def here(home, *arguments):
    return run_here("--home", str(home.root), *arguments)


def assert_one_calm_sentence(done, code):
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert lines[0].endswith(".")
    assert "Traceback" not in done.stderr
    assert "!" not in done.stderr


class Publisher:
    """Creates signed manifests in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.key = folder / "publisher.key"
        self.public = key_text(signing.make_key(self.key))

    def publish(self, *, index="http://127.0.0.1:9/index.json", sha256="0" * 64, expired=False, **changes):
        now = datetime.now(UTC) - timedelta(days=30 if expired else 0)
        body = practice_manifest(
            revision=changes.pop("revision", 1),
            publisher_key=self.public,
            peers=[NOBODY],
            index_address=index,
            index_sha256=sha256,
            now=now,
        )
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = body
            for name in parents:
                place = place[name]
            place[last] = value
        manifest = self.folder / "manifest.json"
        manifest.write_text(json.dumps(body))
        signing.sign_manifest(manifest, self.key)
        return manifest


@pytest.fixture
def publisher(tmp_path):
    return Publisher(tmp_path)


def test_the_life_of_a_manifest_from_key_to_catalogue(home, publisher, tmp_path):
    made = json.loads(skep(home, "key", "new", "--out", str(tmp_path / "my.key"), "--json").stdout)
    manifest = publisher.publish()
    manifest.write_text(manifest.read_text().replace(publisher.public, made["key"]))
    signing.signature_path(manifest).unlink()
    assert_one_calm_sentence(skep(home, "project", "verify", str(manifest)), 2)

    signed = skep(home, "project", "sign", str(manifest), "--key", made["path"])
    assert signed.returncode == 0, signed.stderr
    verified = json.loads(skep(home, "project", "verify", str(manifest), "--json").stdout)
    assert (verified["valid"], verified["fingerprint"]) == (True, made["fingerprint"])

    shown = skep(home, "project", "show", str(manifest))
    for words in ("Downloads", "Sends", "Others see", "Needs", made["fingerprint"], "Fits"):
        assert words in shown.stdout
    assert "ept from" in shown.stdout
    told = json.loads(skep(home, "--json", "project", "show", str(manifest)).stdout)
    assert told["fit"]["verdict"] == "fits"
    assert {*told["sandbox"]["enforced"], *told["sandbox"]["missing"]} == set(Guard)

    assert "No projects yet" in skep(home, "projects").stdout
    assert skep(home, "project", "add", str(manifest)).returncode == 0
    (known,) = json.loads(skep(home, "projects", "--json").stdout)["projects"]
    assert known["id"] == "practice"
    assert made["fingerprint"] in skep(home, "projects").stdout
    assert skep(home, "project", "show", "practice").returncode == 0
    assert skep(home, "project", "verify", "practice").returncode == 0


def test_a_key_is_never_overwritten(home, tmp_path):
    assert skep(home, "key", "new", "--unencrypted-file").returncode == 0
    assert_one_calm_sentence(skep(home, "key", "new", "--unencrypted-file"), 2)
    assert skep(home, "key", "new", "--out", str(tmp_path / "my.key")).returncode == 0
    assert_one_calm_sentence(skep(home, "key", "new", "--out", str(tmp_path / "my.key")), 2)


def spoil_nothing(manifest):
    manifest.unlink()


def spoil_signature(manifest):
    signing.signature_path(manifest).unlink()


def spoil_words(manifest):
    manifest.write_text(manifest.read_text().replace("Practice swarm", "Practise swarm"))


def spoil_size(manifest):
    manifest.write_text(manifest.read_text() + " " * 70_000)


def spoil_json(manifest):
    manifest.write_text("{")


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (spoil_nothing, "no manifest"),
        (spoil_signature, "not signed"),
        (spoil_words, "changed"),
        (spoil_size, "larger than"),
        (spoil_json, "changed"),
    ],
)
def test_a_spoilt_manifest_is_refused_and_nothing_is_kept(home, publisher, spoil, word):
    manifest = publisher.publish()
    spoil(manifest)
    for verb in (("join",), ("project", "add"), ("project", "verify"), ("project", "show")):
        done = here(home, *verb, str(manifest))
        assert_one_calm_sentence(done, 2)
        assert word in done.stderr
    assert not home.projects_folder.exists()


def test_an_expired_manifest_is_refused(home, publisher):
    manifest = publisher.publish(expired=True)
    for verb in (("join",), ("project", "add"), ("project", "verify")):
        done = here(home, *verb, str(manifest))
        assert_one_calm_sentence(done, 2)
        assert "expired" in done.stderr


def test_an_illegal_combination_of_flags_cannot_even_be_signed(home, publisher):
    manifest = publisher.publish()
    manifest.write_text(manifest.read_text().replace('"delay_state_averaging": true', '"delay_state_averaging": false'))
    done = here(home, "project", "sign", str(manifest), "--key", str(publisher.key))
    assert_one_calm_sentence(done, 2)
    assert "delay_state_averaging" in done.stderr


def test_a_project_that_is_too_big_is_refused_before_anything_is_downloaded(home, publisher):
    manifest = publisher.publish(needs__memory_gb=4_000)
    done = here(home, "--json", "join", str(manifest))
    assert done.returncode == 1
    (problem,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert problem["title"].startswith("Too big: needs")
    assert not home.cache_folder.exists()


def test_another_publisher_under_the_same_name_is_refused(home, publisher, tmp_path):
    assert here(home, "project", "add", str(publisher.publish())).returncode == 0
    (tmp_path / "other").mkdir()
    other = Publisher(tmp_path / "other")
    assert_one_calm_sentence(here(home, "join", str(other.publish(revision=2))), 2)


def test_a_revision_that_needs_more_asks_for_consent(home, publisher):
    assert here(home, "project", "add", str(publisher.publish())).returncode == 0
    more = publisher.publish(revision=2, needs__disk_gb=0.2)
    assert_one_calm_sentence(here(home, "project", "add", str(more)), 2)
    assert here(home, "project", "add", str(more), "--consent").returncode == 0


def test_a_silent_data_server_ends_the_join_with_its_reason(home, publisher):
    manifest = publisher.publish()
    done = skep(home, "--json", "join", str(manifest), within=120)
    assert done.returncode == 1
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events][-2:] == ["problem", "left"]
    assert "Traceback" not in done.stderr


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "served"
    _, sha256, _ = build_shards(
        library_sources(), folder, sequence_length=SEQUENCE_LENGTH, samples_per_shard=64, max_shards=2,
        held_out_samples=8,
    )  # fmt: skip
    with serving(folder) as address:
        yield f"{address}/index.json", sha256


def test_peers_out_of_reach_end_the_join_with_their_reason(home, publisher, served):
    index, sha256 = served
    done = skep(home, "--json", "join", str(publisher.publish(index=index, sha256=sha256)), within=120)
    assert done.returncode == 1, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (problem,) = [event for event in events if event["event"] == "problem"]
    assert problem["title"].endswith(".")
    assert problem["hint"]
    assert "Traceback" not in done.stderr
    assert [event for event in events if event["event"] == "stage" and event["name"] == "peers"]


def test_a_port_in_use_is_named_before_anything_is_downloaded(home, publisher, served):
    port = served[0].split(":")[2].split("/")[0]
    assert here(home, "settings", "set", "network.port", port).returncode == 0
    done = here(home, "join", str(publisher.publish()))
    assert done.returncode == 2, done.stderr
    assert f"Port {port}" in done.stderr
    assert not home.cache_folder.exists()


@pytest.mark.alone
def test_ctrl_c_before_joining_ends_it_quickly_and_says_so_by_130(home, publisher, served):
    index, sha256 = served
    manifest = publisher.publish(index=index, sha256=sha256)
    running = subprocess.Popen(
        [*SKEP, "--home", str(home.root), "--json", "join", str(manifest)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert json.loads(running.stdout.readline())["event"] == "stage"
    family = psutil.Process(running.pid).children(recursive=True)
    begun = time.monotonic()
    running.send_signal(signal.SIGINT)
    out, error = running.communicate(timeout=10)
    assert time.monotonic() - begun < 3
    assert running.returncode == 130
    assert json.loads(out.splitlines()[-1])["event"] == "left"
    assert "Traceback" not in error
    assert not [process for process in family if process.is_running()]


def test_practice_ends_with_ctrl_c_and_when_its_parent_is_gone(home):
    for end in (lambda running: running.send_signal(signal.SIGINT), lambda running: running.stdin.close()):
        with subprocess.Popen(
            [*SKEP, "--home", str(home.root), "--json", "practice", "--until-eof"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as running, ExitStack() as ended:  # fmt: skip
            ended.callback(running.kill)
            too_slow = threading.Timer(90, running.kill)
            too_slow.start()
            ended.callback(too_slow.cancel)
            assert json.loads(running.stdout.readline())["manifest"].endswith(".json")
            end(running)
            assert running.wait(15) == 0


def test_practice_on_a_taken_port_is_refused(home, served):
    port = served[0].split(":")[2].split("/")[0]
    assert_one_calm_sentence(here(home, "practice", "--port", port), 2)
