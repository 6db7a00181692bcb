"""Worker processes of a project with signed checkpoints: which note they accept, and what they begin with."""

import hashlib
from dataclasses import replace

import pytest
import torch

from english import in_english
from invitations import Project
from skep.core.project.fields import key_text
from skep.core.project.shards import shard_name
from skep.core.project.signed_checkpoint import CheckpointFile, file_of
from skep.core.project.signed_checkpoint import read as read_note
from skep.core.session.messages import (
    FinishTraining,
    ShardWanted,
    StopTraining,
    WorkerFailed,
    WorkerJoined,
    WorkerProgress,
)
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder, read
from worker_pipes import TINY, PipedWorker, cut_shards

pytestmark = pytest.mark.timeout(600)
DEADLINE = 240
"""Seconds; the steps on a computer that is busy with other things."""
RUN = TINY | {"id": "signed-run", "sync__target_batch_size": 64}


@pytest.fixture
def project():
    return Project("open", **RUN, initial_state="signed")


@pytest.fixture
def start(tmp_path, project):
    """Starts a worker with this text as the note that the engine has fetched, or one that loads states with None."""
    started = []

    def start(note, *peers, checkpoint=None, **options):
        index = cut_shards(tmp_path)
        if note is not None:
            index = replace(index, checkpoint=note, files=(checkpoint,) if checkpoint else ())
        worker = PipedWorker(tmp_path, index)
        started.append(worker)
        state = "swarm" if note is None else "signed"
        changes = RUN | {"publisher__key": key_text(project.public), "initial_state": state}
        return worker.start(peers, **changes, **options)

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.tell(StopTraining())
        worker.close()


def file_with(project, **changes):
    fields = {"run_id": project.manifest.run_id, "epoch": 40, "sha256": "a" * 64, "size": 5}
    return CheckpointFile(**fields | changes)


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("false", "words"),
    [
        (lambda own: "", "The note of the signed checkpoint is not valid"),
        (lambda own: own.note(file_with(own)).replace("a" * 64, "b" * 64), "was changed after it was signed"),
        (lambda own: Project("open", id=RUN["id"]).note(file_with(own)), "signed with another key"),
        (lambda own: own.note(file_with(own), project="other-project"), "of another project"),
        (lambda own: own.note(file_with(own, run_id="other-run")), "is of another run, other-run"),
    ],
    ids=["none", "changed", "key", "project", "run"],
)
def test_without_a_note_of_its_publisher_for_this_run_a_worker_does_not_join(start, project, false, words):
    worker = start(false(project))
    failed = worker.wait_for(lambda message: isinstance(message, WorkerFailed), DEADLINE)
    assert words in in_english(failed.problem.title)
    assert not failed.retry
    assert not worker.all(WorkerJoined, ShardWanted)


def trained_alone(start, seeds, folder):
    """The state of a worker after an epoch or two, as it saves it when it leaves."""
    worker = start(None, *seeds, snapshots=folder)
    joined = worker.wait_for(lambda message: isinstance(message, WorkerJoined), DEADLINE)
    worker.wait_for(lambda message: getattr(getattr(message, "progress", None), "epoch", 0) >= 1, DEADLINE)
    worker.tell(FinishTraining())
    worker.wait_gone(DEADLINE)
    (path,) = folder.rglob("*.safetensors")
    assert joined.epoch == 0
    return path


@pytest.mark.way_in
def test_a_newcomer_begins_with_the_signed_checkpoint_while_a_donor_offers_its_own_state(
    start, project, seeds, tmp_path
):
    kept = trained_alone(start, seeds, tmp_path / "donor")
    state = read(kept)
    signed = Checkpoint(
        state.run_id,
        state.epoch,
        project.text,
        {name: torch.full_like(tensor, 0.125) for name, tensor in state.parameters.items()},
        state.optimizer,
    )
    path = CheckpointFolder(tmp_path / "signed", 1).write(signed)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(tmp_path / shard_name(sha256))
    size = (tmp_path / shard_name(sha256)).stat().st_size
    note = project.note(file_with(project, run_id=state.run_id, epoch=state.epoch, sha256=sha256, size=size))

    donor = start(None, *seeds, snapshots=tmp_path / "donor")
    at = donor.wait_for(lambda message: isinstance(message, WorkerJoined), DEADLINE)
    file = file_of(read_note(note.encode(), lambda *_: True), project.manifest)
    newcomer = start(note, *seeds, checkpoint=file, share=0.0, snapshots=tmp_path / "newcomer")
    joined = newcomer.wait_for(lambda message: isinstance(message, WorkerJoined), DEADLINE)
    assert sha256 in {message.sha256 for message in newcomer.all(ShardWanted)}
    assert joined.epoch >= at.epoch >= state.epoch
    # before it trains, nothing is saved at its end
    newcomer.wait_for(lambda message: isinstance(message, WorkerProgress), DEADLINE)
    newcomer.tell(FinishTraining())
    newcomer.wait_gone(DEADLINE)
    (path,) = (tmp_path / "newcomer").rglob("*.safetensors")
    found = read(path)
    assert found.epoch == state.epoch
    assert all(torch.equal(found.parameters[name], tensor) for name, tensor in signed.parameters.items())
