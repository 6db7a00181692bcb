"""The state machine: (snapshot, message, now) -> (snapshot, effects). Pure, total, and the heart of skep.

::

    idle ───Join───> joining ───WorkerJoined───> training <───share 0, share above 0───> paused
     ^ ^              │  ^                          │                                      │
     │ └─IndexFailed──┤  │                          │                                      │
     │   first start  │  └─────────Tick────── recovering <──────WorkerExited───────────────┤
     │   failed       │                             │        (also from joining,           │
     │                │                             │         once it had joined)          │
     │ <──────────────┼────────────Leave, Quit──────┘                                      │
     │                v                                                                    │
     └─WorkerExited─ leaving <───Leave, Quit, WorkerFailed that no retry mends─────────────┘

Leave from training or paused lets the worker finish the round first: leaving with `leaving_until`, which Quit, a second
Leave with `now`, and that moment itself cut short. Every other way into leaving stops the worker at once.
The share the worker runs at is always `allowance.share`; a pause is an allowance of 0 with a reason, kept as `pause`.
A worker runs exactly while `snapshot.worker` is set: from StartWorker to WorkerExited. Contributions still pending
when it exits are lost. What a worker reports is handled in `reports`, what several messages share in `stay`.
"""

from __future__ import annotations

from dataclasses import replace

from skep.core import messages as m
from skep.core import policy
from skep.core.model import Allowance, GpuMemory, PauseState, Phase, Problem
from skep.core.reports import LONGEST_WAIT, report
from skep.core.snapshot import Snapshot, WorkerRun
from skep.core.stay import Step, become_idle, go_on_leaving, leave, leave_after_round, start_worker, trouble

__all__ = ["PauseState", "Snapshot", "Step", "WorkerRun", "initial", "step"]


def initial(settings: dict[str, bool | int | float | str], pause: PauseState | None, now: float) -> Snapshot:
    """An engine's first snapshot: the settings, and the pause kept from last time. `now` is wall clock seconds."""
    allowance = policy.decide(pause, settings, now)
    return Snapshot(settings=settings, pause=pause, allowance=allowance)


def step(snapshot: Snapshot, message: m.Message, now: float) -> Step:
    """What `message` changes, and what is to be done about it. `now` is wall clock seconds. Never raises."""
    awake, waking = _after_pause(snapshot, now)
    granted, granting = _granted(awake, now)
    moved, effects = _apply(granted, message, now)
    after, regranting = _granted(moved, now)
    return after, (*waking, *granting, *effects, *regranting)


def _apply(snapshot: Snapshot, message: m.Message, now: float) -> Step:
    match message:
        case m.Join() | m.Leave() | m.Pause() | m.Resume() | m.ChangeSettings() | m.Quit():
            return _obey(snapshot, message, now)
        case m.Tick():
            return _tick(snapshot, now)
        case m.ConditionsSeen(seen=seen):
            return replace(snapshot, conditions=snapshot.conditions.with_seen(seen)), ()
        case m.IndexArrived():
            return _index_arrived(snapshot, message)
        case m.IndexFailed():
            return _index_failed(snapshot, message)
        case m.ProblemArose(problem=problem):
            return trouble(snapshot, problem)
        case _:
            return report(snapshot, message, now)


# --- time


def _after_pause(snapshot: Snapshot, now: float) -> Step:
    if snapshot.pause is None or not policy.is_over(snapshot.pause, now):
        return snapshot, ()
    return replace(snapshot, pause=None), (m.SavePause(paused=False),)


def _granted(snapshot: Snapshot, now: float) -> Step:
    """The allowance of this moment, the phase that goes with it, and the worker told when its share changed."""
    allowance = policy.decide(snapshot.pause, snapshot.settings, now)
    phase = snapshot.phase
    if phase in (Phase.TRAINING, Phase.PAUSED):
        phase = Phase.PAUSED if allowance.share == 0 else Phase.TRAINING
    changed = _for_worker(allowance) != _for_worker(snapshot.allowance)
    return replace(snapshot, allowance=allowance, phase=phase), (m.SetAllowance(allowance),) if changed else ()


def _for_worker(allowance: Allowance) -> tuple[float, bool, GpuMemory]:
    return allowance.share, allowance.present, allowance.memory


def _tick(snapshot: Snapshot, now: float) -> Step:
    if snapshot.phase is Phase.LEAVING:
        return go_on_leaving(snapshot, now)
    if snapshot.phase is not Phase.RECOVERING or snapshot.restart_at is None:
        return snapshot, ()
    # a clock put back must not turn a wait of seconds into one of hours
    due = now >= snapshot.restart_at or now < snapshot.restart_at - LONGEST_WAIT
    return start_worker(snapshot) if due else (snapshot, ())


# --- commands


def _obey(snapshot: Snapshot, command: m.Command, now: float) -> Step:
    match command:
        case m.Join():
            return _join(snapshot, command)
        case m.Leave(now=at_once):
            return leave(snapshot) if at_once else leave_after_round(snapshot, now)
        case m.Quit():
            return _quit(snapshot)
        case m.Pause(until=until):
            return _pause(snapshot, PauseState(until), now)
        case m.Resume():
            return replace(snapshot, pause=None), (m.SavePause(paused=False),)
        case m.ChangeSettings(values=values):
            return replace(snapshot, settings=snapshot.settings | values), (m.SaveSettings(values),)


def _join(snapshot: Snapshot, command: m.Join) -> Step:
    if snapshot.quitting:
        return snapshot, ()
    if snapshot.project is not None:
        return snapshot, (m.Notify(_already_in(snapshot.phase, snapshot.project.title)),)
    joining = Snapshot(
        phase=Phase.JOINING,
        settings=snapshot.settings,
        allowance=snapshot.allowance,
        pause=snapshot.pause,
        conditions=snapshot.conditions,
        project=command.project,
        seeds=command.seeds,
    )
    return joining, (m.FetchIndex(command.project),)


def _already_in(phase: Phase, title: str) -> Problem:
    if phase is Phase.LEAVING:
        return Problem(f"skep is still leaving {title}.", "Join again in a moment.")
    return Problem(f"You are in {title} already.", "Leave it first; one project at a time.")


def _quit(snapshot: Snapshot) -> Step:
    if snapshot.quitting:
        return snapshot, ()
    quitting = replace(snapshot, quitting=True)
    return (quitting, (m.EndEngine(),)) if snapshot.phase is Phase.IDLE else leave(quitting)


def _pause(snapshot: Snapshot, pause: PauseState, now: float) -> Step:
    if policy.is_over(pause, now):
        return replace(snapshot, pause=None), (m.SavePause(paused=False),)
    return replace(snapshot, pause=pause), (m.SavePause(paused=True, until=pause.until),)


# --- the project's index


def _awaits_index(snapshot: Snapshot, message: m.IndexArrived | m.IndexFailed) -> bool:
    """False for an answer that belongs to a join given up since."""
    waiting = snapshot.phase is Phase.JOINING and snapshot.index is None
    return waiting and message.project == snapshot.project


def _index_arrived(snapshot: Snapshot, message: m.IndexArrived) -> Step:
    if not _awaits_index(snapshot, message):
        return snapshot, ()
    return start_worker(replace(snapshot, index=message.index))


def _index_failed(snapshot: Snapshot, message: m.IndexFailed) -> Step:
    if not _awaits_index(snapshot, message):
        return snapshot, ()
    told, notifying = trouble(snapshot, message.problem)
    idle, effects = become_idle(told)
    return idle, (*notifying, *effects)
