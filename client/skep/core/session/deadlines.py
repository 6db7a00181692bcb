"""Deadlines on the worker's progress: when it counts as stuck, and what is said while nothing is trained. Pure.

Progress is what the training thread has done, not that the worker reports: another of its threads does that. Times are
the policy's steady seconds, so that neither a suspend nor a clock adjustment is taken for a delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Final

from skep.core.project.manifest import VerifiedProject
from skep.core.session import messages as m
from skep.core.session import renewal
from skep.core.session.phases import Phase, Stage, SwarmProgress, Wait
from skep.core.session.snapshot import Advance, Snapshot
from skep.core.text import NOTHING, Problem, Text

SILENT_SECONDS: Final = 60.0
"""A worker that trains reports about once a second; without a report for this long, the whole process hangs."""
FLOOR_SECONDS: Final = 60.0
UNKNOWN_SECONDS: Final = 600.0
"""The same before the first micro-batch has shown how long one takes."""
USUAL_TIMES: Final = 10.0
"""A micro-batch, with its nap, may take this many times as long as the median of the last ones, and so may a round."""
GAPS: Final = 20
"""Micro-batches, and rounds, that are considered."""
ENOUGH: Final = 3
"""Rounds after which their median counts; before, and at most, a round may take as long as the manifest allows."""
ROUNDS: Final = 3.0
"""Rounds that may follow each other: of the gradients, of the state, and an earlier one in the background."""
TRANSFERRED: Final = 1 << 20
"""Bytes from the swarm that count as progress of a round or of a state; requests of other peers are a few hundred."""
PART: Final = 1 << 16
"""Bytes sent that count as a part of a state."""
STAGE_SECONDS: Final[Mapping[Stage, float]] = {
    Stage.HARDWARE: 300.0,
    Stage.DATA: 300.0,
    Stage.PEERS: 300.0,
    Stage.WARM_UP: 900.0,
    Stage.STATE: 2400.0,
}
"""How long a stage may go without a report; the engine itself watches downloads, and the worker that of the state."""
UNTRAINED_SECONDS: Final = 60.0
"""After this time without a trained sample, front ends say what the worker waits for."""
LATE_TIMES: Final = 2.0
"""A micro-batch that takes so many times as long as the median is no usual one any more."""
QUIET_SECONDS: Final = 10.0
ORDINARY: Final = frozenset(
    {
        Text("wait.data"),
        Text("wait.memory"),
        Text("wait.swarm"),
        Text("wait.saving"),
        Text("wait.nothing_trained"),
        renewal.AFRESH,
    }
)
"""Waits that end by themselves, or with the worker; the others show that something is wrong."""


def begun(snapshot: Snapshot) -> Advance:
    """The state of a worker that has just been started, has joined, or is in a further stage."""
    now = snapshot.policy_state.steady
    return Advance(heard_at=now, at=now, trained_at=now)


def reported(snapshot: Snapshot, message: m.WorkerProgress) -> Advance:
    """The state after a report of a worker that has joined, or hands over the state of a run that is over."""
    last, now, progress = snapshot.advance, snapshot.policy_state.steady, message.progress
    heard = replace(
        last,
        heard_at=now,
        trained_at=now if _trains_or_rests(snapshot, message) else last.trained_at,
        waits_for=message.waits_for,
    )
    if progress.bytes_sent - last.sent >= PART:
        heard = replace(heard, sent=progress.bytes_sent, sent_at=now)
    if not _has_advanced(last, message) and snapshot.allowance.share > 0:
        return heard
    gaps = (*last.gaps, now - last.at)[-GAPS:] if progress.compute_seconds > last.computed else last.gaps
    rounds = (*last.rounds, now - last.at)[-GAPS:] if progress.epoch > last.epoch >= 0 else last.rounds
    return replace(
        heard,
        at=now,
        gaps=gaps,
        rounds=rounds,
        epoch=progress.epoch,
        computed=progress.compute_seconds,
        napped=progress.nap_seconds,
        received=progress.bytes_received,
    )


def _trains_or_rests(snapshot: Snapshot, message: m.WorkerProgress) -> bool:
    return message.progress.samples_per_second > 0 or snapshot.allowance.share == 0


def _has_advanced(last: Advance, message: m.WorkerProgress) -> bool:
    progress = message.progress
    if progress.epoch != last.epoch or message.waits_for in (Wait.DATA, Wait.MEMORY):
        return True
    if progress.bytes_received - last.received >= TRANSFERRED:
        return True
    # what is computed after the end of an epoch waits for its round, which has to come
    computed = progress.compute_seconds > last.computed or progress.nap_seconds > last.napped
    return computed and not _is_full(progress)


def _is_full(progress: SwarmProgress) -> bool:
    return 0 < progress.target_batch_size <= progress.samples_accumulated


def overdue(snapshot: Snapshot) -> Problem | None:
    """What is wrong with a worker that is stuck, except while leaving; None if it is not, or is about to exit anyway."""
    worker = snapshot.worker
    if worker is None or worker.failed or worker.departing:
        return None
    if snapshot.phase is Phase.JOINING:
        return _stage_overdue(snapshot)
    advance, now = snapshot.advance, snapshot.policy_state.steady
    again = Text("worker.log_has_details_skep_starts")
    # one that was told to end by another program reports nothing while it saves its state, for as long as it asked for
    silent = SILENT_SECONDS + (snapshot.last_round_seconds if snapshot.saving else 0.0)
    if now - advance.heard_at > silent:
        return Problem(Text("worker.training_process_silent", seconds=silent), again)
    if snapshot.saving:
        return None
    longest = _longest(snapshot)
    if snapshot.allowance.share > 0 and now - advance.at > longest:
        return Problem(Text("worker.training_process_stuck", seconds=longest), again)
    return None


def _stage_overdue(snapshot: Snapshot) -> Problem | None:
    assert snapshot.worker is not None
    stage = snapshot.stage.stage if snapshot.stage is not None else Stage.HARDWARE
    longest = STAGE_SECONDS[stage]
    if snapshot.worker.wanted or snapshot.policy_state.steady - snapshot.advance.at <= longest:
        return None
    hint = Text("worker.log_has_details_skep_starts" if snapshot.tries_again else "worker.worker_log_has_details")
    return Problem(Text("worker.joining_stuck", stage=stage.label, seconds=longest), hint)


def _longest(snapshot: Snapshot) -> float:
    """How long the worker may go without progress: one micro-batch, and the rounds of an epoch."""
    assert isinstance(snapshot.project, VerifiedProject)
    sync, gaps, rounds = snapshot.project.manifest.sync, snapshot.advance.gaps, snapshot.advance.rounds
    usual = median(gaps) if gaps else UNKNOWN_SECONDS / USUAL_TIMES
    longest_round = sync.matchmaking_seconds + sync.averaging_timeout_seconds
    if len(rounds) >= ENOUGH:
        longest_round = min(longest_round, max(FLOOR_SECONDS, USUAL_TIMES * median(rounds)))
    return max(FLOOR_SECONDS, USUAL_TIMES * usual) + ROUNDS * longest_round


def _untrained_seconds(advance: Advance) -> float:
    """How long nothing may be trained before that is said; while a long micro-batch is computed, it is trained."""
    if advance.waits_for is not Wait.NOTHING or not advance.gaps:
        return UNTRAINED_SECONDS
    return max(UNTRAINED_SECONDS, LATE_TIMES * median(advance.gaps))


def waiting(snapshot: Snapshot) -> Text:
    """What is said instead of "Training …" when nothing was trained for a minute, or all is lost; else the empty message."""
    advance, now = snapshot.advance, snapshot.policy_state.steady
    if snapshot.phase is Phase.PAUSED and snapshot.renewing and snapshot.allowance.share > 0:
        return renewal.AFRESH
    if snapshot.phase is not Phase.TRAINING:
        return NOTHING
    if snapshot.saving:
        return Text("wait.saving")
    if now - advance.trained_at < _untrained_seconds(advance):
        return snapshot.losses.sentence
    if now - advance.heard_at > QUIET_SECONDS:
        return Text("wait.no_answer")
    match advance.waits_for:
        case Wait.DATA:
            return Text("wait.data")
        case Wait.MEMORY:
            return Text("wait.memory")
        case Wait.SWARM:
            return Text("wait.swarm")
        case Wait.NOTHING:
            return Text("wait.nothing_trained")
