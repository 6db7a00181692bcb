"""State transitions for reports of the worker and of downloads, one function per message. Pure.

A report that arrives while no worker runs, or that does not fit the phase, changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skep.core.project.data import FileRef, ShardIndex, ShardRef
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, note
from skep.core.session import deadlines, renewal, transitions
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.losses import Losses
from skep.core.session.phases import Phase, Stage, StageProgress, Wait
from skep.core.session.snapshot import Snapshot, WorkerRun
from skep.core.session.transitions import STOPPED, Step, become_idle, leave, needs_data, trouble
from skep.core.text import Problem, Remedy, Text

EVALUATIONS_SHOWN: Final = 512
KILLED: Final = -9

Report = m.WorkerReport | m.ContributionReport | m.ShardReport | m.OfWorker


def report(snapshot: Snapshot, message: Report, now: float) -> Step:
    """The state and effects after one report. `now` is wall clock seconds."""
    if snapshot.worker is None:
        return _late(snapshot, message)
    return _report(snapshot, snapshot.worker, message, now)


def _report(snapshot: Snapshot, worker: WorkerRun, message: Report, now: float) -> Step:
    match message:
        case m.WorkerStage():
            return _stage(snapshot, message), ()
        case m.WorkerJoined():
            return _joined(snapshot, worker, message, now), ()
        case m.WorkerProgress():
            return _progress(snapshot, worker, message)
        case m.WorkerEvaluated(evaluation=evaluation):
            return _evaluated(snapshot, evaluation)
        case m.ContributionPending() | m.ContributionConfirmed() | m.ContributionLost():
            return _contributed(snapshot, worker, message)
        case m.ShardWanted() | m.ShardArrived() | m.ShardFailed():
            return _shard(snapshot, worker, message)
        case m.WorkerFailed() | m.WorkerFinished() | m.WorkerSaving() | m.WorkerExited():
            return _ended(snapshot, worker, message, now)
        case m.WorkerMeasured():
            return _measured(snapshot, worker, message)
        case m.WorkerMemory() | m.ShardProgress():
            return snapshot, ()  # for front ends only


def _late(snapshot: Snapshot, message: Report) -> Step:
    """Without a worker, only the loss of contributions that were pending at its exit is handled."""
    if isinstance(message, m.ContributionLost):
        return _noted(snapshot, _contribution(message))
    return snapshot, ()


# --- joining and training


def _stage(snapshot: Snapshot, message: m.WorkerStage) -> Snapshot:
    stage = StageProgress(message.stage, message.fraction, message.detail)
    if snapshot.phase is Phase.JOINING:
        return replace(snapshot, stage=stage, advance=deadlines.begun(snapshot))
    if snapshot.phase not in (Phase.TRAINING, Phase.PAUSED) or message.stage is not Stage.STATE:
        return snapshot
    # it has fallen behind, and loads the state again; donors may be busy for long, and the worker itself watches that
    now = snapshot.policy_state.steady
    return replace(snapshot, stage=stage, advance=replace(snapshot.advance, heard_at=now, at=now))


def _joined(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerJoined, now: float) -> Snapshot:
    if snapshot.phase is not Phase.JOINING:
        return snapshot
    return replace(
        snapshot,
        phase=Phase.TRAINING,
        stage=None,
        problem=None,
        joined=True,
        peer_id=message.peer_id,
        device=message.device,
        devices=message.devices,
        in_step=message.in_step,
        client_mode=message.client_mode,
        relayed=message.relayed,
        verified=message.verified,
        heavy=message.heavy,
        worker=replace(worker, joined_at=now, joined_epoch=message.epoch),
        renewing=False,
        advance=deadlines.begun(snapshot),
    )


def _progress(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerProgress) -> Step:
    assert snapshot.project is not None
    if worker.joined_at is None and not snapshot.finished:
        return snapshot, ()
    advance = deadlines.reported(snapshot, message)
    moved = replace(
        snapshot,
        stage=snapshot.stage if message.waits_for is Wait.SWARM else None,
        progress=message.progress,
        position=message.position,
        heavy=message.heavy,
        devices=message.devices or snapshot.devices,
        advance=advance,
    )
    turned = snapshot.progress is None or snapshot.progress.epoch != message.progress.epoch
    # not on every report: samples of an unfinished epoch are lost in a crash and may be drawn again
    saving = _saved(moved) if turned else ()
    if not message.contribution or message.samples <= 0:
        return moved, saving
    growing = Contribution(message.contribution, message.progress.epoch, message.samples, ContributionState.PENDING)
    noted, recording = _noted(moved, growing)
    return noted, (*saving, *recording)


def _saved(snapshot: Snapshot) -> tuple[e.Effect, ...]:
    assert snapshot.project is not None
    return (e.SavePosition(snapshot.project.id, snapshot.position),)


def _evaluated(snapshot: Snapshot, evaluation: Evaluation) -> Step:
    assert snapshot.project is not None
    # the first is always kept: the last is compared with it
    shown = (*snapshot.evaluations[:1], *snapshot.evaluations[1:][2 - EVALUATIONS_SHOWN :], evaluation)
    return replace(snapshot, evaluations=shown), (e.SaveEvaluation(snapshot.project.id, evaluation),)


# --- contributions


def _contribution(message: m.ContributionReport) -> Contribution:
    match message:
        case m.ContributionPending(id=id_, epoch=epoch, samples=samples):
            return Contribution(id_, epoch, samples, ContributionState.PENDING)
        case m.ContributionConfirmed(id=id_, epoch=epoch, samples=samples, peers=peers):
            return Contribution(id_, epoch, samples, ContributionState.CONFIRMED, peers=peers)
        case m.ContributionLost(id=id_, epoch=epoch, samples=samples, reason=reason, peers=peers):
            return Contribution(id_, epoch, samples, ContributionState.LOST, reason, peers)


def _contributed(snapshot: Snapshot, worker: WorkerRun, message: m.ContributionReport) -> Step:
    if isinstance(message, m.ContributionConfirmed):
        snapshot = replace(snapshot, failures=0, losses=Losses(), worker=replace(worker, confirmed=True))
    noted, recording = _noted(snapshot, _weighed(_contribution(message), snapshot))
    if not isinstance(message, m.ContributionLost):
        return noted, recording
    after, ending = _lost(replace(noted, losses=noted.losses.plus(message.reason)), worker)
    return after, (*recording, *ending)


def _lost(snapshot: Snapshot, worker: WorkerRun) -> Step:
    """End a worker of which all is lost: what hangs may be in it. If the next one has no success, it is not the cause."""
    losses = snapshot.losses
    trains = snapshot.phase is Phase.TRAINING and not (worker.failed or worker.departing)
    if not trains or losses.answered or not losses.sentence:
        return snapshot, ()
    ended = replace(snapshot, losses=replace(losses, answered=True), worker=replace(worker, failed=True))
    told, notifying = trouble(ended, Problem(losses.sentence, Text("session.trains_afresh_once")))
    return told, (*notifying, e.StopWorker())  # it may write its state: what does not answer is killed all the same


def _weighed(contribution: Contribution, snapshot: Snapshot) -> Contribution:
    """`contribution` with the number of samples of the whole swarm in an epoch."""
    if contribution.state is not ContributionState.CONFIRMED or snapshot.progress is None:
        return contribution
    return replace(contribution, swarm=max(contribution.samples, snapshot.progress.target_batch_size))


def _noted(snapshot: Snapshot, contribution: Contribution) -> Step:
    project = snapshot.project or snapshot.last_project
    noted = note(snapshot.account, snapshot.totals, contribution)
    if project is None or noted is None:
        return snapshot, ()
    account, totals = noted
    return replace(snapshot, account=account, totals=totals), (e.Record(project.id, contribution),)


# --- shards


def _shard(snapshot: Snapshot, worker: WorkerRun, message: m.ShardWanted | m.ShardArrived | m.ShardFailed) -> Step:
    if isinstance(message, m.ShardWanted):
        return _wanted(snapshot, worker, message.sha256)
    return _shard_answered(snapshot, worker, message)


def _wanted(snapshot: Snapshot, worker: WorkerRun, sha256: str) -> Step:
    project = snapshot.project
    if not needs_data(snapshot) or snapshot.index is None or project is None:
        return snapshot, ()
    shard = _find(snapshot.index, sha256)
    if shard is None:
        unknown = Problem(Text("worker.training_process_asked_data_not"))
        return snapshot, (e.TellWorker(m.ShardFailed(sha256, unknown)),)
    waiting = replace(worker, wanted=worker.wanted | {sha256})
    return replace(snapshot, worker=waiting), (e.FetchShard(shard, project.reach),)


def _find(index: ShardIndex, sha256: str) -> ShardRef | FileRef | None:
    known: tuple[ShardRef | FileRef, ...] = (*index.shards, *index.held_out, *index.files)
    return next((file for file in known if file.sha256 == sha256), None)


def _shard_answered(snapshot: Snapshot, worker: WorkerRun, message: m.ShardArrived | m.ShardFailed) -> Step:
    if message.sha256 not in worker.wanted:
        return snapshot, ()  # requested by an earlier worker
    served = replace(worker, wanted=worker.wanted - {message.sha256})
    return replace(snapshot, worker=served), (e.TellWorker(message),)


# --- the end of a worker


def _measured(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerMeasured) -> Step:
    growth = renewal.grown(snapshot, worker, message.use)
    measured = replace(snapshot, worker=replace(worker, growth=growth))
    if growth.excess is None or not renewal.is_possible(snapshot, worker):
        return measured, ()
    asked = replace(measured, renewing=True, renewed_at=snapshot.policy_state.steady)
    return asked, (e.RenewWorker(*growth.excess),)


def _ended(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerEnd | m.WorkerExited, now: float) -> Step:
    match message:
        case m.WorkerFailed():
            return _failed(snapshot, worker, message)
        case m.WorkerFinished():
            return _finished(snapshot, worker, now)
        case m.WorkerSaving(seconds=seconds):
            return transitions.save(snapshot, worker, seconds, now), ()
        case m.WorkerExited():
            return _exited(snapshot, worker, message, now)


def _failed(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerFailed) -> Step:
    if snapshot.phase is Phase.LEAVING:
        return leave(snapshot)
    if worker.departing:
        return transitions.depart(snapshot, worker, worker.stopped_for)
    failed = replace(snapshot, worker=replace(worker, failed=True))
    told, notifying = trouble(failed, message.problem)
    if message.retry:
        # the worker exits by itself; stopping it is a safeguard
        return told, (*notifying, e.StopWorker())
    leaving, stopping = leave(told)
    return leaving, (*notifying, *stopping)


def _finished(snapshot: Snapshot, worker: WorkerRun, now: float) -> Step:
    if worker.failed or snapshot.finished:
        return snapshot, ()
    assert isinstance(snapshot.project, VerifiedProject)
    return transitions.leave_finished(snapshot, snapshot.project.manifest, now)


def _exited(snapshot: Snapshot, worker: WorkerRun, message: m.WorkerExited, now: float) -> Step:
    assert snapshot.project is not None
    asked = snapshot.phase is Phase.LEAVING and not worker.failed
    goes = worker.departing or (message.code == 0 and renewal.is_asked(snapshot, worker))
    losing = e.LosePending(snapshot.project.id, worker.stopped_for if asked or goes else STOPPED)
    saving = _saved(snapshot) if snapshot.progress is not None else ()
    gone = replace(snapshot, worker=None, progress=None, saving=False)
    if snapshot.phase is Phase.LEAVING:
        after, effects = become_idle(gone)
        return after, (losing, *saving, *effects)
    if goes:
        return replace(gone, phase=Phase.PAUSED, stage=None, falling=None), (losing, *saving)
    told, notifying = (gone, ()) if worker.failed else trouble(gone, _unexpected(message.code))
    # what was loaded of the state took minutes, and the network may be back soon
    told = replace(told, resumed=told.resumed or _has_loaded(told))
    recovering = transitions.recover(told, message.chance, now, confirmed=worker.confirmed)
    after, effects = recovering if told.tries_again else become_idle(told)
    return after, (losing, *saving, *notifying, *effects)


def _has_loaded(snapshot: Snapshot) -> bool:
    """Whether a part of the swarm's state had arrived."""
    stage = snapshot.stage
    return stage is not None and stage.stage is Stage.STATE and stage.fraction > 0


def _unexpected(code: int) -> Problem:
    if code == KILLED:
        return Problem(
            Text("worker.training_process_was_ended_from"),
            Text("worker.computer_may_have_run_out"),
            Remedy.PROJECTS.value,
        )
    return Problem(Text("worker.training_process_ended_unexpectedly"), Text("worker.worker_log_has_details"))
