"""The state machine of the engine: (snapshot, message, now) -> (snapshot, effects). Pure and total.

::

    idle ───Join───> joining ───WorkerJoined───> training <───share 0, share above 0───> paused
     ^ ^              │  ^                          │                                      │
     │ └─IndexFailed──┤  │                          │                                      │
     │   first start  │  └─────────Tick────── recovering <──────WorkerExited───────────────┤
     │   failed       │                             │        (also from joining, by IndexFailed too,
     │                │                             │         once it had joined, or if it is resumed)
     │ <──────────────┼────────────Leave, Quit──────┘                                      │
     │                v                                                                    │
     └─WorkerExited─ leaving <───Leave, Quit, WorkerFailed that no retry mends─────────────┘

    paused ───no network: the worker exits───> paused without a worker ───network again───> joining    (see `transitions`)
    training ───no progress: EndStuckWorker, WorkerExited───> recovering                                (see `deadlines`)
    recovering ───failed MOST_FAILURES times───> paused without a worker ───Resume, or after BREAK_SECONDS───> joining

Leave from training or paused lets the worker finish the round first, until `leaving_until`, Quit, or a second Leave
with `now`. Every other transition to leaving stops the worker immediately. A worker that has left may then write its
state to the disk, until `leaving_until`, a second Quit, or Leave with `now`.
The worker's share is always `allowance.share`, which the policy's rules grant and `decision` changes over time; a
manual pause is stored as `pause`.
A worker runs exactly while `snapshot.worker` is set: from StartWorker to WorkerExited. Contributions still pending
when it exits are lost. `reports` handles the worker's reports; `transitions` has what several messages share.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Final

from skep.core.device import ALL, chosen, first_chosen, numbered
from skep.core.policy.allowance import PauseState, Reaction
from skep.core.policy.conditions import Condition, Conditions, sensible
from skep.core.policy.decision import PolicyState, grant, with_input_read
from skep.core.policy.device_shares import ceilings as ceilings_of
from skep.core.policy.rules import PROCESSOR, Facts, is_over
from skep.core.project import fit
from skep.core.project.manifest import VerifiedProject
from skep.core.session import deadlines, timeline, transitions
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.reports import report
from skep.core.session.snapshot import Snapshot
from skep.core.session.transitions import (
    Step,
    become_idle,
    go_on_leaving,
    leave,
    leave_after_round,
    start_worker,
    trouble,
)
from skep.core.settings.setting import Value
from skep.core.text import Problem, Text
from skep.core.traffic import DOWNLOAD, UPLOAD, caps_of

_GRANTED_FROM: Final = operator.attrgetter(
    "conditions", "settings", "pause", "phase", "project", "worker", "device", "devices", "heavy", "power_caps"
)
"""The fields that an allowance depends on, apart from the time."""


def initial(
    settings: dict[str, Value],
    pause: PauseState | None,
    now: float,
    *,
    zone: tzinfo = UTC,
    conditions: Conditions | None = None,
    reactions: Sequence[Reaction] = (),
) -> Snapshot:
    """The initial snapshot: the settings, and the state saved by the last run. `now` is wall clock seconds."""
    snapshot = Snapshot(
        settings=settings, pause=pause, conditions=conditions or Conditions(), reactions=tuple(reactions)
    )
    return _granted(snapshot, now, zone, at_once=True)[0]


def step(snapshot: Snapshot, message: m.Message, now: float, zone: tzinfo = UTC) -> Step:
    """The next snapshot after `message`, and the effects to carry out. Never raises.

    `now` is wall clock seconds, `zone` this computer's time zone.
    """
    awake, waking = _after_pause(snapshot, now)
    granted, granting = _granted(awake, now, zone)
    moved, effects = _apply(granted, message, now)
    at_once = _acts_at_once(message)
    regranted, regranting = (
        (moved, ()) if _is_granted(granted, moved, at_once=at_once) else _granted(moved, now, zone, at_once=at_once)
    )
    followed, following = transitions.follow(regranted, now)
    watched = timeline.watched(snapshot, followed, message, now)
    waiting = replace(watched, waiting=deadlines.waiting(watched))
    awoken, sleeping = timeline.slept(waiting, message, now)
    after, recording = timeline.recorded(awoken, now)
    meter, due = timeline.metered(snapshot, after, now)
    spending = (e.RecordUsage(due),) if due is not None else ()
    idling = (e.StopFetching(),) if transitions.needs_data(snapshot) and not transitions.needs_data(after) else ()
    told = (*waking, *granting, *effects, *regranting, *following, *idling, *sleeping, *recording, *spending)
    return replace(after, meter=meter), told


def _is_granted(granted: Snapshot, moved: Snapshot, *, at_once: bool) -> bool:
    """Whether nothing that the allowance depends on has changed since it was granted, as at most ticks."""
    return not at_once and all(map(operator.is_, _GRANTED_FROM(granted), _GRANTED_FROM(moved)))


def _acts_at_once(message: m.Message) -> bool:
    """Whether the message is a request of the user, which is not ramped."""
    if isinstance(message, m.ChangeSettings):
        return any(key.partition(".")[0] in ("compute", "when", "heat") for key in message.values)
    return isinstance(message, m.Resume)


def _apply(snapshot: Snapshot, message: m.Message, now: float) -> Step:
    match message:
        case m.Join() | m.Leave() | m.Pause() | m.Resume() | m.ChangeSettings() | m.Quit():
            return _obey(snapshot, message, now)
        case m.Tick():
            return _tick(snapshot, now)
        case m.ConditionsSeen() | m.PowerCapSeen() | m.AboutToSleep() | m.Slept():
            return _noticed(snapshot, message)
        case m.WorkerPaused():
            return timeline.obeyed(snapshot, message, now)
        case m.IndexArrived():
            return _index_arrived(snapshot, message)
        case m.IndexFailed():
            return _index_failed(snapshot, message, now)
        case m.RevocationsArrived():
            return snapshot, (e.TellWorker(message),) if snapshot.worker else ()
        case m.ProblemArose(problem=problem, over=None) | m.WorkerNoticed(problem=problem, over=None):
            return trouble(snapshot, problem)
        case m.ProblemArose(problem=relief, over=past) | m.WorkerNoticed(problem=relief, over=past):
            left = None if snapshot.problem == past else snapshot.problem
            return replace(snapshot, problem=left), (e.Notify(relief),)
        case _:
            return report(snapshot, message, now)


# --- time


def _after_pause(snapshot: Snapshot, now: float) -> Step:
    if snapshot.pause is None or not is_over(snapshot.pause, now):
        return snapshot, ()
    return replace(snapshot, pause=None), (e.SavePause(paused=False),)


def _granted(snapshot: Snapshot, now: float, zone: tzinfo, *, at_once: bool = False) -> Step:
    """The current allowance, the corresponding phase, and the message to the worker if its share changes."""
    facts = facts_of(snapshot, now, zone)
    given = grant(snapshot.policy_state, facts, at_once=at_once or snapshot.project is None)
    allowance, before, phase = given.allowance, snapshot.allowance, snapshot.phase
    if phase in (Phase.TRAINING, Phase.PAUSED):
        away = snapshot.worker is None or snapshot.worker.departing
        phase = Phase.PAUSED if allowance.share == 0 or away else Phase.TRAINING
    ceilings = ceilings_of(snapshot.settings, given.state.heats)
    after = replace(
        snapshot,
        policy_state=given.state,
        holding=given.holding,
        allowance=allowance,
        ceilings=ceilings,
        phase=phase,
    )
    told = (allowance.share, allowance.present, allowance.memory) != (before.share, before.present, before.memory)
    told |= after.shares != snapshot.shares
    return after, (e.SetAllowance(allowance, after.shares),) if told else ()


def facts_of(snapshot: Snapshot, now: float, zone: tzinfo) -> Facts:
    """The input of the rules. The device is the one that the worker confirmed, or else the chosen one."""
    wanted = str(snapshot.settings.get("compute.device", ""))
    on_processor = (snapshot.device or first_chosen(wanted)) in (PROCESSOR, "cpu")
    devices = tuple(each.id for each in snapshot.devices)
    return Facts(
        snapshot.conditions,
        snapshot.settings,
        now,
        zone,
        snapshot.pause,
        power_caps=snapshot.power_caps,
        devices=devices or _chosen(wanted, snapshot.conditions),
        in_step=snapshot.in_step,
        on_processor=on_processor,
        heavy=snapshot.heavy,
    )


def _chosen(wanted: str, conditions: Conditions) -> tuple[str, ...]:
    """The devices before a worker has confirmed them: those that the setting names, or that are read."""
    named = numbered(["cuda:0" if each == "cuda" else each for each in chosen(wanted)])
    if named not in (("",), (ALL,)):
        return named
    return tuple(conditions[Condition.TEMPERATURE].each) or ("",)


def _noticed(snapshot: Snapshot, message: m.FromComputer) -> Step:
    match message:
        case m.ConditionsSeen():
            return _seen(snapshot, message), ()
        case m.PowerCapSeen(caps=caps):
            return replace(snapshot, power_caps=caps), ()
        case m.AboutToSleep():
            return snapshot, ()  # it may be cancelled; Slept is handled instead
        case m.Slept(seconds=seconds):
            return transitions.woken(snapshot, seconds)


def _seen(snapshot: Snapshot, message: m.ConditionsSeen) -> Snapshot:
    conditions = snapshot.conditions.with_seen(sensible(message.seen))
    read = Condition.INPUT in message.seen
    state: PolicyState = with_input_read(snapshot.policy_state) if read else snapshot.policy_state
    return replace(snapshot, conditions=conditions, policy_state=state)


def _tick(snapshot: Snapshot, now: float) -> Step:
    if snapshot.phase is Phase.LEAVING:
        return go_on_leaving(snapshot, now)
    if snapshot.phase is not Phase.RECOVERING:
        return transitions.ticked(snapshot, now)
    due = transitions.is_due(snapshot, now)
    return transitions.start(snapshot) if due and snapshot.allowance.network else (snapshot, ())


# --- commands


def _obey(snapshot: Snapshot, command: m.Command, now: float) -> Step:
    match command:
        case m.Join():
            return _join(snapshot, command)
        case m.Leave(now=at_once):
            # whoever leaves has decided: what went wrong before is not why the stay ends
            left = replace(snapshot, problem=None, left=snapshot.phase is not Phase.IDLE)
            return leave(left) if at_once else leave_after_round(left, now)
        case m.Quit():
            return _quit(snapshot)
        case m.Pause(until=until):
            return _pause(snapshot, PauseState(until), now)
        case m.Resume():
            # while recovering, the wait spares a swarm that cannot be reached; a break is for the user to end
            restart_at = snapshot.restart_at if snapshot.phase is Phase.RECOVERING else None
            return replace(snapshot, pause=None, restart_at=restart_at), (e.SavePause(paused=False),)
        case m.ChangeSettings(values=values):
            changed = replace(snapshot, settings=snapshot.settings | values)
            return changed, (e.SaveSettings(values), *_traffic(changed, values))


def _traffic(snapshot: Snapshot, values: Mapping[str, Value]) -> tuple[e.Effect, ...]:
    """What follows from another limit on the traffic."""
    if not isinstance(snapshot.project, VerifiedProject) or not {UPLOAD, DOWNLOAD} & values.keys():
        return ()
    caps = caps_of(snapshot.settings)
    told = (e.TellWorker(m.SetTraffic(*caps)),) if snapshot.worker else ()
    return (*told, *(e.Notify(Problem(each)) for each in fit.slow_rounds(snapshot.project.manifest, caps)))


def _join(snapshot: Snapshot, command: m.Join) -> Step:
    if snapshot.quitting:
        return snapshot, ()
    if snapshot.project is not None:
        return snapshot, (e.Notify(_already_in(snapshot.phase, snapshot.project.title)),)
    joining = Snapshot(
        phase=Phase.JOINING,
        settings=snapshot.settings,
        allowance=snapshot.allowance,
        pause=snapshot.pause,
        conditions=snapshot.conditions,
        power_caps=snapshot.power_caps,
        ceilings=snapshot.ceilings,
        holding=snapshot.holding,
        policy_state=snapshot.policy_state,
        reactions=snapshot.reactions,
        change=snapshot.change,
        project=command.project,
        seeds=command.seeds,
        resumed=command.resumed,
    )
    return joining, (e.FetchIndex(command.project),)


def _already_in(phase: Phase, title: str) -> Problem:
    if phase is Phase.LEAVING:
        return Problem(Text("engine.skep_still_leaving", title=title), Text("engine.join_again_moment"))
    return Problem(Text("engine.you_already", title=title), Text("engine.leave_first_one_project_time"))


def _quit(snapshot: Snapshot) -> Step:
    if snapshot.quitting:
        return leave(snapshot) if snapshot.saving else (snapshot, ())
    quitting = replace(snapshot, quitting=True)
    if snapshot.phase is Phase.IDLE:
        return quitting, (e.EndEngine(),)
    if snapshot.saving and snapshot.worker is not None:
        return transitions.quit_after_saving(quitting, snapshot.worker)
    return leave(quitting)


def _pause(snapshot: Snapshot, pause: PauseState, now: float) -> Step:
    if is_over(pause, now):
        return replace(snapshot, pause=None), (e.SavePause(paused=False),)
    return replace(snapshot, pause=pause), (e.SavePause(paused=True, until=pause.until),)


# --- the project's index


def _awaits_index(snapshot: Snapshot, message: m.IndexArrived | m.IndexFailed) -> bool:
    """Whether the answer belongs to the current join and not to an abandoned one."""
    waiting = snapshot.phase is Phase.JOINING and snapshot.index is None
    return waiting and message.project == snapshot.project


def _index_arrived(snapshot: Snapshot, message: m.IndexArrived) -> Step:
    if not _awaits_index(snapshot, message):
        return snapshot, ()
    ready = replace(snapshot, index=message.index)
    # while the network may not be used the stay begins paused, and `transitions` starts the worker later
    return start_worker(ready) if ready.allowance.network else (replace(ready, phase=Phase.PAUSED), ())


def _index_failed(snapshot: Snapshot, message: m.IndexFailed, now: float) -> Step:
    if not _awaits_index(snapshot, message):
        return snapshot, ()
    told, notifying = trouble(snapshot, message.problem)
    again = transitions.recover(told, message.chance, now) if told.tries_again else become_idle(told)
    after, effects = again
    return after, (*notifying, *effects)
