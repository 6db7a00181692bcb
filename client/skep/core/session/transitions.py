"""The transitions that several messages share: leaving, stopping, and leaving the swarm temporarily. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skep.core.policy.device_shares import left_free
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.project.needs import optimizer_bytes, parameters_of
from skep.core.project.spread import FLOAT
from skep.core.session import deadlines, renewal
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.losses import ASLEEP, LEFT
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot, WorkerRun
from skep.core.text import NOTHING, Problem, Text, sentences
from skep.core.traffic import MBIT, caps_of

Step = tuple[Snapshot, tuple[e.Effect, ...]]

STOPPED: Final = Text("worker.worker_stopped_before_round")
GB: Final = 1_000_000_000
FIRST_WAIT: Final = 1.0
"""Of which chance takes up to half."""
LONGEST_WAIT: Final = 300.0
"""Maximum seconds before a failed worker is restarted; the wait doubles with each consecutive failure."""
MOST_FAILURES: Final = 10
"""After this many in a row without a confirmed contribution the project is paused."""
BREAK_SECONDS: Final = 1800.0
"""How long, unless the user resumes; then one worker is started, and its failure begins the next break."""
LAST_ROUND_SECONDS: Final = 60.0
LONGEST_LAST_ROUND_SECONDS: Final = 3600.0
"""Least and most seconds that leaving waits for the round."""
HANDING_OVER_SECONDS: Final = 600.0
"""At least as long may a worker of a finished run send the state to the host and to late peers; longer for a large state."""
HANDED_OVER_SECONDS: Final = 120.0
"""A worker that sends nothing of it for this long has handed it over, or hangs; by itself it exits earlier."""
LONGEST_SAVING_SECONDS: Final = 1800.0
"""Of the time for which a worker asks to write its state to the disk."""
COPIES: Final = 2
"""How often the state may be sent, each time at the rate that the project asks for, or at the limit in the settings."""
LEAST_RATE: Final = 625_000.0
"""Bytes per second that are assumed where a project asks for less."""


def trouble(snapshot: Snapshot, problem: Problem) -> Step:
    """Show `problem`, and notify the user once."""
    if snapshot.problem == problem:
        return snapshot, ()
    return replace(snapshot, problem=problem), (e.Notify(problem),)


def start(snapshot: Snapshot) -> Step:
    """Begin another try: fetch the index of the project if there is none yet, else start a worker."""
    assert isinstance(snapshot.project, VerifiedProject)
    if snapshot.index is not None:
        return start_worker(snapshot)
    joining = replace(snapshot, phase=Phase.JOINING, stage=None, restart_at=None)
    return joining, (e.FetchIndex(snapshot.project),)


def start_worker(snapshot: Snapshot) -> Step:
    """Start a worker for the project whose index was fetched, at the share granted now."""
    assert isinstance(snapshot.project, VerifiedProject)
    assert snapshot.index is not None
    settings, caps = snapshot.settings, caps_of(snapshot.settings)
    options = m.WorkerOptions(
        manifest=snapshot.project.text,
        index=snapshot.index,
        seeds=snapshot.seeds,
        share=snapshot.allowance.share,
        device=str(settings.get("compute.device", "")),
        threads=int(settings.get("compute.threads", 0)),
        nccl=(
            int(settings.get("compute.nccl_min_channels", 0)),
            int(settings.get("compute.nccl_socket_threads", 0)),
            int(settings.get("compute.nccl_sockets_per_thread", 0)),
        ),
        port=int(settings.get("network.port", 0)),
        map_port=bool(settings.get("network.map_port", False)),
        client_mode=str(settings.get("network.client_mode", "automatic")),
        present=snapshot.allowance.present,
        memory=snapshot.allowance.memory,
        ceilings=dict(snapshot.shares),
        leave_gpu=int(float(settings.get("memory.leave_gpu_gb", 0.0)) * GB),
        leave_gpu_of=left_free(settings),
        leave_ram=int(float(settings.get("memory.leave_ram_gb", 0.0)) * GB),
        upload=caps.upload,
        download=caps.download,
        snapshot_bytes_per_day=int(float(settings.get("disk.snapshots_gb_per_day", 0.0)) * GB),
    )
    joining = replace(
        snapshot,
        phase=Phase.JOINING,
        worker=WorkerRun(),
        stage=None,
        restart_at=None,
        falling=None,
        advance=deadlines.begun(snapshot),
    )
    return joining, (e.StartWorker(snapshot.project, options),)


def needs_data(snapshot: Snapshot) -> bool:
    """Whether what is being downloaded is of use: to a worker, to the next one after a failure, or to a join that waits for
    the index.
    """
    worker = snapshot.worker
    if snapshot.phase in (Phase.IDLE, Phase.LEAVING) or (worker is None and snapshot.phase is Phase.PAUSED):
        return False
    if snapshot.phase is Phase.RECOVERING or (worker is not None and worker.failed):
        return snapshot.allowance.network
    return worker is None or not worker.departing


def leave(snapshot: Snapshot) -> Step:
    """Leave immediately: through the phase leaving while a worker runs, else to idle. Ends a wait for the round."""
    if snapshot.phase is Phase.IDLE or (snapshot.phase is Phase.LEAVING and snapshot.leaving_until is None):
        return snapshot, ()
    if snapshot.worker is None:
        return become_idle(snapshot)
    return replace(snapshot, phase=Phase.LEAVING, stage=None, leaving_until=None), (e.StopWorker(),)


def leave_after_round(snapshot: Snapshot, now: float) -> Step:
    """Leave after the round that uses the accumulated samples; immediately where there can be none."""
    if snapshot.phase is Phase.LEAVING:
        return snapshot, ()
    trains = snapshot.phase in (Phase.TRAINING, Phase.PAUSED)
    if not trains or snapshot.worker is None or snapshot.worker.failed:
        return leave(snapshot)
    if snapshot.worker.departing:
        until = snapshot.worker.departing_until
        return leave(snapshot) if until is None else (replace(snapshot, phase=Phase.LEAVING, leaving_until=until), ())
    wait = _last_round_seconds(snapshot)
    waiting = replace(snapshot, phase=Phase.LEAVING, leaving_until=now + wait, last_round_seconds=wait)
    return waiting, (e.TellWorker(m.FinishTraining()),)


def _last_round_seconds(snapshot: Snapshot) -> float:
    """How long leaving waits: twice the expected time, because the other peers may slow down."""
    expected = snapshot.progress.seconds_left if snapshot.progress else None
    return min(LONGEST_LAST_ROUND_SECONDS, max(LAST_ROUND_SECONDS, 2 * (expected or 0.0)))


def go_on_leaving(snapshot: Snapshot, now: float) -> Step:
    """Keep leaving until the wait is over, or there is nothing more to send after the end of the run."""
    until = snapshot.leaving_until
    idle = snapshot.saving or not snapshot.finished
    sent = idle or snapshot.policy_state.steady - snapshot.advance.sent_at <= HANDED_OVER_SECONDS
    return (snapshot, ()) if until is None or (sent and _waits(snapshot, until, now)) else leave(snapshot)


def _waits(snapshot: Snapshot, until: float, now: float) -> bool:
    """Whether the wait for the last round goes on; setting the clock back must not extend it."""
    return until - snapshot.last_round_seconds <= now < until


def save(snapshot: Snapshot, worker: WorkerRun, seconds: float, now: float) -> Snapshot:
    """Let a worker that has left the swarm write its state, for the `seconds` that it asks for, once."""
    if worker.failed or snapshot.saving:
        return snapshot
    wait = min(LONGEST_SAVING_SECONDS, max(0.0, seconds))
    until = now + wait
    departing = worker.departing or renewal.is_asked(snapshot, worker)
    told = replace(worker, saving_until=until, departing=departing, departing_until=until if departing else None)
    leaving = until if snapshot.phase is Phase.LEAVING else None
    return replace(snapshot, saving=True, worker=told, leaving_until=leaving, last_round_seconds=wait)


def quit_after_saving(snapshot: Snapshot, worker: WorkerRun) -> Step:
    """Leave when the worker has written its state: only a second Quit, or Leave with `now`, does not wait for that."""
    if snapshot.phase is Phase.LEAVING:
        return snapshot, ()
    return replace(snapshot, phase=Phase.LEAVING, stage=None, leaving_until=worker.saving_until), ()


def leave_finished(snapshot: Snapshot, manifest: Manifest, now: float) -> Step:
    """The run is over: say what became of it, and leave when the worker has handed over the state and exits."""
    confirmed = snapshot.totals.confirmed.samples
    said = sentences(
        Text("session.run_finished", title=manifest.title, epochs=manifest.schedule.total_epochs),
        Text("session.run_finished_own_part", samples=confirmed) if confirmed else NOTHING,
        Text("session.result_at_homepage", homepage=manifest.homepage)
        if manifest.homepage
        else Text("session.result_from_publisher", publisher=manifest.publisher.name),
    )
    until, wait = snapshot.leaving_until, snapshot.last_round_seconds
    if snapshot.phase is not Phase.LEAVING:
        wait = _handing_over_seconds(snapshot, manifest)
        until = now + wait
    begun = replace(snapshot.advance, sent_at=snapshot.policy_state.steady)
    leaving = replace(
        snapshot, phase=Phase.LEAVING, stage=None, leaving_until=until, last_round_seconds=wait, advance=begun
    )
    over = replace(leaving, problem=None, finished=said)
    # the user has asked to leave immediately
    return over, (e.Notify(Problem(said)), *((e.StopWorker(),) if until is None else ()))


def _handing_over_seconds(snapshot: Snapshot, manifest: Manifest) -> float:
    """How long a worker may go on sending the state of a finished run, while it does send it."""
    size = parameters_of(manifest) * (FLOAT + optimizer_bytes(manifest.optimizer))
    rate, limit = max(LEAST_RATE, manifest.needs.upload_mbit * MBIT), caps_of(snapshot.settings).upload
    return max(HANDING_OVER_SECONDS, COPIES * size / (min(rate, limit) if limit else rate))


def become_idle(snapshot: Snapshot) -> Step:
    """End the stay, and the engine after a Quit. The totals stay in the snapshot."""
    idle = replace(
        snapshot,
        phase=Phase.IDLE,
        project=None,
        last_project=snapshot.project,
        index=None,
        stage=None,
        worker=None,
        restart_at=None,
        leaving_until=None,
        falling=None,
        saving=False,
    )
    return idle, (e.EndEngine(),) if snapshot.quitting else ()


SLEEP_SECONDS: Final = 30.0
"""After a shorter suspend the swarm still knows this peer."""

_IN_THE_SWARM: Final = (Phase.TRAINING, Phase.PAUSED)


def follow(snapshot: Snapshot, now: float) -> Step:
    """Stop the worker when the network may not be used, and start one when it may be used again."""
    worker = snapshot.worker
    if not snapshot.allowance.network:
        if worker is None or worker.departing or worker.failed:
            return snapshot, ()
        return _out_of(snapshot, worker, now)
    if snapshot.phase is Phase.PAUSED and worker is None and is_due(snapshot, now):
        return start(snapshot)
    return snapshot, ()


def is_due(snapshot: Snapshot, now: float) -> bool:
    """Whether the next worker need not be waited for; setting the clock back must not extend the wait to hours."""
    at = snapshot.restart_at
    longest = BREAK_SECONDS if snapshot.phase is Phase.PAUSED else LONGEST_WAIT
    return at is None or now >= at or now < at - longest


def _out_of(snapshot: Snapshot, worker: WorkerRun, now: float) -> Step:
    match snapshot.phase:
        case Phase.TRAINING | Phase.PAUSED:
            # on a metered connection only a round that uses this computer's samples justifies its traffic
            if snapshot.allowance.rule == "metered" and not snapshot.account.pending:
                return depart(snapshot, worker)
            # on a metered connection waiting has a price too
            wait = LAST_ROUND_SECONDS if snapshot.allowance.rule == "metered" else _last_round_seconds(snapshot)
            return _depart_after_round(snapshot, worker, wait, now)
        case Phase.JOINING:
            return depart(snapshot, worker)
        case Phase.IDLE | Phase.RECOVERING | Phase.LEAVING:
            return snapshot, ()


def _depart_after_round(snapshot: Snapshot, worker: WorkerRun, wait: float, now: float) -> Step:
    told = replace(worker, departing=True, departing_until=now + wait)
    waiting = replace(snapshot, phase=Phase.PAUSED, worker=told, last_round_seconds=wait)
    return waiting, (e.TellWorker(m.FinishTraining()),)


def depart(snapshot: Snapshot, worker: WorkerRun, reason: Text = LEFT) -> Step:
    """Stop the worker immediately; the stay continues without it. What was not averaged is lost for `reason`."""
    told = replace(worker, departing=True, departing_until=None, stopped_for=reason)
    return replace(snapshot, phase=Phase.PAUSED, stage=None, worker=told), (e.StopWorker(reason),)


def recover(snapshot: Snapshot, chance: float, now: float, *, confirmed: bool = False) -> Step:
    """After a failure: try again after a wait, or pause after too many of them.

    It is the first in a row if the worker that failed has brought a `confirmed` contribution.
    """
    failures = 0 if confirmed else snapshot.failures + 1
    failed = replace(snapshot, failures=failures, renewing=False)
    if failures >= MOST_FAILURES:
        return _take_a_break(failed, now)
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** max(0, failures - 1)) * (1.0 + chance) / 2.0
    return replace(failed, phase=Phase.RECOVERING, restart_at=now + wait), ()


def _take_a_break(snapshot: Snapshot, now: float) -> Step:
    reason = snapshot.problem.title if snapshot.problem is not None else NOTHING
    failures = snapshot.failures
    problem = Problem(
        Text("worker.failed_in_row", failures=failures)
        if snapshot.joined
        else Text("session.not_joined_in_row", failures=failures),
        sentences(reason, Text("worker.resume_tries_at_once", seconds=BREAK_SECONDS)),
    )
    resting = replace(snapshot, phase=Phase.PAUSED, stage=None, restart_at=now + BREAK_SECONDS, falling=None)
    return trouble(resting, problem)


def woken(snapshot: Snapshot, seconds: float) -> Step:
    """Handle a suspend of `seconds`: the worker goes on if the round that its samples wait for is still to come."""
    worker = snapshot.worker
    if worker is None or worker.failed or snapshot.saving or seconds <= SLEEP_SECONDS:
        return snapshot, ()
    if snapshot.phase not in (*_IN_THE_SWARM, Phase.JOINING) or (worker.departing and worker.departing_until is None):
        return snapshot, ()
    if snapshot.account.pending and snapshot.progress and seconds < (snapshot.progress.seconds_left or 0.0):
        return snapshot, ()  # the worker finds the swarm again, and its samples are still wanted
    return depart(snapshot, worker, ASLEEP)


def ticked(snapshot: Snapshot, now: float) -> Step:
    """Handle a Tick: a worker that is stuck is ended, and a last round that takes too long is abandoned."""
    worker = snapshot.worker
    if worker is not None and (problem := deadlines.overdue(snapshot)):
        told, notifying = trouble(replace(snapshot, worker=replace(worker, failed=True)), problem)
        return told, (*notifying, e.EndStuckWorker())
    if worker is None or worker.failed or snapshot.phase not in _IN_THE_SWARM:
        return snapshot, ()
    if renewal.is_late(snapshot, worker):
        return _depart_after_round(snapshot, worker, _last_round_seconds(snapshot), now)
    if worker.departing_until is None:
        return snapshot, ()
    return (snapshot, ()) if _waits(snapshot, worker.departing_until, now) else depart(snapshot, worker)
