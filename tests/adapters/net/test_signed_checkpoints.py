"""The note of a signed checkpoint, and the checkpoint, from a real web server."""

import hashlib
import json

import pytest

from downloads import LENGTH, QUICK, ROOMY, Posted, assert_arrived, assert_failed, fetch, make_index, make_shard
from fakes import make_project
from invitations import Project
from skep.adapters.net.shards_http import HttpShards
from skep.core.project import signed_checkpoint
from skep.core.project.shards import shard_name
from skep.core.project.signed_checkpoint import CheckpointFile
from skep.core.session.messages import IndexArrived
from web_of_faults import missing, ranged, status, whole

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "tiny-code-lm.checkpoint.json"


@pytest.fixture
def project(server):
    """A project that demands a signed checkpoint, whose index is on the server."""
    index = make_index(make_shard()[1])
    server.scripts["index.json"] = [whole(index)]
    server.scripts[shard_name(SHA256)] = [ranged(CONTENT)]
    return Project("open", **described(server, index), initial_state="signed")


def described(server, index):
    address, sha256 = f"{server.address}/index.json", hashlib.sha256(index).hexdigest()
    return {"data__index": address, "data__sha256": sha256, "recipe__sequence_length": LENGTH}


def file_of(project, epoch=40, **changes):
    fields = {"run_id": project.manifest.run_id, "epoch": epoch, "sha256": SHA256, "size": len(CONTENT)}
    return CheckpointFile(**fields | changes)


@pytest.fixture
def join(cache, server, project):
    """Asks as the engine does when it joins; the server answers with these notes, one after the other."""
    made = []

    def join(*notes, of=project):
        server.scripts[NAME] = [note if callable(note) else whole(note.encode()) for note in notes]
        made.append(HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK))
        posted = Posted()
        made[-1].fetch_index(make_project(manifest=of.text.encode()), posted)
        return made[-1], posted.answer()

    yield join
    for each in made:
        each.close()


def test_the_note_comes_with_the_index_and_the_checkpoint_is_one_of_its_files(join, project, cache):
    note = project.note(file_of(project))
    shards, answer = join(note)
    assert isinstance(answer, IndexArrived)
    assert answer.index.checkpoint == note
    (file,) = answer.index.files
    assert_arrived(fetch(shards, file), cache, CONTENT, file)
    assert (cache.parent / "notes" / NAME).read_text() == note


def test_the_note_is_asked_for_again_after_an_error_and_a_download_goes_on_where_it_broke_off(
    join, project, cache, server
):
    server.scripts[shard_name(SHA256)] = [ranged(CONTENT, send_at_most=1000), ranged(CONTENT)]
    shards, answer = join(status(502), whole(project.note(file_of(project)).encode()))
    assert isinstance(answer, IndexArrived)
    assert_arrived(fetch(shards, answer.index.files[0]), cache, CONTENT, answer.index.files[0])


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("false", "words"),
    [
        (lambda own: json.dumps(json.loads(own.note(file_of(own))) | {"signature": "A" * 86 + "=="}), "was changed"),
        (lambda own: own.note(file_of(own)).replace(SHA256, "c" * 64), "was changed after it was signed"),
        (lambda own: Project("open").note(file_of(own)), "signed with another key"),
        (lambda own: own.note(file_of(own), project="other-project"), "that of another project"),
        (lambda own: own.note(file_of(own, run_id="other-run")), "is of another run, other-run"),
        (lambda own: own.note(file_of(own), since=2), "and a later one"),
        (lambda own: json.dumps({"epoch": 40}), "is missing"),
        (lambda own: " " * (signed_checkpoint.LIMIT + 1), "larger than 4 KiB"),
        (lambda own: missing, "begins with its publisher's signed checkpoint only, and there is none"),
    ],
    ids=["unsigned", "changed", "key", "project", "run", "older", "fields", "large", "none"],
)
def test_without_the_publishers_newest_note_of_this_run_nothing_is_joined(join, project, cache, false, words):
    held = project.note(file_of(project), since=1)
    assert isinstance(join(held)[1], IndexArrived)
    assert_failed(join(false(project))[1], words)
    assert (cache.parent / "notes" / NAME).read_text() == held
    assert isinstance(join(held)[1], IndexArrived)


@pytest.mark.way_in
def test_a_changed_checkpoint_is_thrown_away_and_said(join, project, cache, server):
    server.scripts[shard_name(SHA256)] = [ranged(CONTENT[:-1] + b"x")]
    shards, answer = join(project.note(file_of(project)))
    assert_failed(fetch(shards, answer.index.files[0]), "project's checkpoint does not match its hash")
    assert not list(cache.iterdir())


@pytest.mark.way_in
def test_a_checkpoint_of_another_size_is_refused(join, project, server):
    shards, answer = join(project.note(file_of(project, size=len(CONTENT) - 1)))
    assert_failed(fetch(shards, answer.index.files[0]), "checkpoint")


def test_a_newer_note_takes_the_place_of_the_known_one_and_of_a_damaged_one(join, project, cache):
    kept = cache.parent / "notes" / NAME
    old, new = project.note(file_of(project), since=1), project.note(file_of(project, 50))
    for note in (old, new):
        assert isinstance(join(note)[1], IndexArrived)
        assert kept.read_text() == note
    kept.write_text("{")
    assert isinstance(join(new)[1], IndexArrived)
    assert kept.read_text() == new


def test_a_project_that_demands_none_fetches_none(join, cache, server):
    index = make_index(make_shard()[1])
    _, answer = join(of=Project("open", **described(server, index)))
    assert (answer.index.files, answer.index.checkpoint) == ((), "")
    assert not (cache.parent / "notes").exists()
