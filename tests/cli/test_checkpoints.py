"""The verb `project checkpoint`, called in this process, with a key file of the test."""

import hashlib
import json

import pytest
import torch
from safetensors.torch import save_file

from manifests import signed
from skep.adapters.storage.paths import Home
from skep.adapters.storage.signed_checkpoints import read_note
from skep.cli.application import main
from skep.core.project import signed_checkpoint
from skep.recipes.registry import parse_manifest
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def manifest(home, tmp_path):
    """A signed manifest; its publisher's key is the one of an earlier skep in the home."""
    return signed(tmp_path, key=home.keys_folder / "publisher.key", initial_state="signed")


@pytest.fixture
def checkpoint(manifest, tmp_path):
    """Writes a checkpoint as the host does; of the manifest's run unless `run_id` names another one."""

    def write(epoch=40, run_id=""):
        run_id = run_id or parse_manifest(manifest.read_bytes()).run_id
        tensors = {"weight": torch.arange(5.0)}
        made = Checkpoint(run_id, epoch, manifest.read_text(), tensors, [torch.ones(2)])
        return CheckpointFolder(tmp_path / "kept", keep=9).write(made)

    return write


@pytest.fixture
def run(home, capsys):
    def run(*arguments):
        code = main(["--home", str(home.root), *map(str, arguments)], {"COLUMNS": "200"})
        return code, capsys.readouterr()

    return run


@pytest.fixture
def refused(run):
    """The message of a verb that fails."""

    def refused(*arguments):
        code, printed = run("project", "checkpoint", *arguments)
        title, hint = printed.err.splitlines()
        assert code in (1, 2)
        assert printed.out == ""
        assert title.endswith(".")
        assert hint.endswith(".")
        return title

    return refused


def mkdir(folder):
    folder.mkdir()
    return folder


def test_the_note_and_the_checkpoint_lie_in_the_folder_and_are_those_that_were_signed(
    run, manifest, checkpoint, tmp_path
):
    source, served = checkpoint(), tmp_path / "served"
    code, printed = run("--json", "project", "checkpoint", manifest, source, "--to", served)
    assert code == 0, printed.err
    said, sha256 = json.loads(printed.out), hashlib.sha256(source.read_bytes()).hexdigest()
    assert {path.name for path in served.iterdir()} == {"tiny-code-lm.checkpoint.json", f"{sha256}.safetensors"}
    assert (served / f"{sha256}.safetensors").read_bytes() == source.read_bytes()
    project = parse_manifest(manifest.read_bytes())
    note = read_note(served / "tiny-code-lm.checkpoint.json", project)
    signed_checkpoint.check(note, project)
    assert (note.epoch, note.sha256, note.size) == (40, sha256, source.stat().st_size)
    assert said["address"] == "https://example.org/tiny/tiny-code-lm.checkpoint.json"
    assert said["checkpoint_address"] == f"https://example.org/tiny/{sha256}.safetensors"


def test_the_next_note_is_later_and_the_checkpoint_may_lie_in_the_folder_already(run, manifest, checkpoint, tmp_path):
    project, served = parse_manifest(manifest.read_bytes()), tmp_path / "served"
    notes = []
    for epoch in (40, 41):
        code, printed = run("project", "checkpoint", manifest, checkpoint(epoch), "--to", served)
        assert code == 0
        assert f"Signed: the checkpoint of epoch {epoch} of Tiny code model." in printed.out
        notes.append(read_note(served / "tiny-code-lm.checkpoint.json", project))
    assert signed_checkpoint.later(*notes) == notes[1]
    again = served / f"{notes[1].sha256}.safetensors"
    assert run("project", "checkpoint", manifest, again, "--to", served)[0] == 0
    assert hashlib.sha256(again.read_bytes()).hexdigest() == notes[1].sha256


def test_a_project_that_does_not_demand_it_yet_can_have_its_first_one(run, home, tmp_path, checkpoint, manifest):
    source = checkpoint()
    earlier = signed(tmp_path, key=home.keys_folder / "publisher.key")  # the run id is the same
    code, printed = run("project", "checkpoint", earlier, source, "--to", tmp_path / "served")
    assert code == 0, printed.err
    assert 'once a revision of the manifest says "initial_state": "signed"' in printed.out


@pytest.mark.way_in
def test_what_is_not_a_checkpoint_of_this_run_is_refused_in_a_sentence(refused, manifest, checkpoint, tmp_path):
    served, other = tmp_path / "served", tmp_path / "other.safetensors"
    to = ("--to", served)
    assert "is of the run other-run, and the manifest of Tiny code model describes the run" in refused(
        manifest, checkpoint(run_id="other-run"), *to
    )
    assert "cannot be read" in refused(manifest, tmp_path / "nowhere", *to)
    run_id = parse_manifest(manifest.read_bytes()).run_id
    for metadata in (None, {"format": "pt"}, {"format": "skep checkpoint 1"}):
        save_file({"x": torch.ones(1)}, other, metadata)
        assert "is not a skep checkpoint" in refused(manifest, other, *to)
    for epoch in ("-1", "many"):
        save_file({"x": torch.ones(1)}, other, {"format": "skep checkpoint 1", "run_id": run_id, "epoch": epoch})
        assert "is not a skep checkpoint" in refused(manifest, other, *to)
    for content in (b"", b"\xff" * 100, b"\x02" + bytes(7) + b"[]", checkpoint().read_bytes()[:100]):
        other.write_bytes(content)
        assert "is not a skep checkpoint" in refused(manifest, other, *to)
    assert not served.exists()


@pytest.mark.way_in
def test_another_key_signs_nothing(refused, run, manifest, checkpoint, tmp_path, home):
    other = home.keys_folder / "other.key"
    signed(mkdir(tmp_path / "elsewhere"), key=other)
    title = refused(manifest, checkpoint(), "--to", tmp_path / "served", "--key", other)
    assert title.startswith("That key is not the key of the project's publisher")
    assert not (tmp_path / "served").exists()


def test_a_note_of_another_publisher_in_the_folder_is_not_replaced(run, refused, home, manifest, checkpoint, tmp_path):
    served = tmp_path / "served"
    elsewhere = signed(mkdir(tmp_path / "elsewhere"), key=home.keys_folder / "other.key", initial_state="signed")
    project = parse_manifest(elsewhere.read_bytes())
    code, printed = run(
        "project", "checkpoint", elsewhere, checkpoint(run_id=project.run_id), "--to", served,
        "--key", home.keys_folder / "other.key",
    )  # fmt: skip
    assert code == 0, printed.err
    assert "is signed with another key" in refused(manifest, checkpoint(), "--to", served)


def test_a_folder_that_cannot_be_written_is_said(refused, manifest, checkpoint, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written to" in refused(manifest, checkpoint(), "--to", tmp_path / "file" / "below")
