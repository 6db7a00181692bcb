"""What `join --json` prints: messages and snapshots as events, each a dict for one JSON line. Pure; prints nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from msgspec import structs

from skep.core.policy.allowance import Allowance
from skep.core.record.contributions import ContributionState, Totals
from skep.core.session import messages as m
from skep.core.session.control import finite
from skep.core.session.phases import StageProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem

Event = dict[str, Any]


def problem(shown: Problem) -> Event:
    return {"event": "problem", "title": shown.title, "hint": shown.hint}


def left(totals: Totals) -> Event:
    return {"event": "left", "totals": asdict(totals)}


class Events:
    """Turns what the engine's observers are told into events.

    A stage, a pause, a problem or a wait for the last round is told when it changes. Each contribution of this run is pending once, and then
    confirmed or lost exactly once, whatever the worker repeats; one that is lost while it still grows is told as
    pending just before. What an earlier run left pending is only told as lost.
    """

    def __init__(self) -> None:
        self._stage: StageProgress | None = None
        self._allowance: Allowance | None = None
        self._problem: Problem | None = None
        self._leaving_until: float | None = None
        self._told: dict[str, ContributionState] = {}
        self._growing = ""

    def of(self, message: m.Message, snapshot: Snapshot) -> list[Event]:
        """The events of one message, in the order to print them."""
        return [
            finite(event)
            for event in (
                *self._stage_change(snapshot),
                *self._from_message(message),
                *self._pause_change(snapshot),
                *self._leaving_change(snapshot),
                *self._problem_change(snapshot),
            )
        ]

    def _stage_change(self, snapshot: Snapshot) -> list[Event]:
        stage, before = snapshot.stage, self._stage
        self._stage = stage
        if stage is None or stage == before:
            return []
        return [{"event": "stage", "name": str(stage.stage), "fraction": stage.fraction, "detail": stage.detail}]

    def _from_message(self, message: m.Message) -> list[Event]:
        match message:
            case m.WorkerJoined():
                return [{"event": "joined"} | structs.asdict(message)]
            case m.WorkerProgress(progress=progress, contribution=growing):
                self._growing = growing or self._growing
                return [{"event": "progress"} | asdict(progress)]
            case m.WorkerEvaluated(evaluation=evaluation):
                return [{"event": "evaluation"} | asdict(evaluation)]
            case m.ContributionPending():
                return self._contribution(message, ContributionState.PENDING)
            case m.ContributionConfirmed():
                return self._contribution(message, ContributionState.CONFIRMED)
            case m.ContributionLost():
                return self._contribution(message, ContributionState.LOST)
            case (
                m.Join()
                | m.Leave()
                | m.Pause()
                | m.Resume()
                | m.ChangeSettings()
                | m.Quit()
                | m.Tick()
                | m.ConditionsSeen()
                | m.AboutToSleep()
                | m.Slept()
                | m.PowerCapSeen()
                | m.IndexArrived()
                | m.IndexFailed()
                | m.WorkerStage()
                | m.WorkerPaused()
                | m.WorkerMemory()
                | m.ShardWanted()
                | m.ShardArrived()
                | m.ShardProgress()
                | m.ShardFailed()
                | m.WorkerFailed()
                | m.WorkerExited()
                | m.ProblemArose()
            ):
                return []

    def _contribution(
        self, message: m.ContributionPending | m.ContributionConfirmed | m.ContributionLost, state: ContributionState
    ) -> list[Event]:
        before = self._told.get(message.id)
        if before not in (None, ContributionState.PENDING) or before is state:
            return []
        self._told[message.id] = state
        body = {"event": "contribution", "reason": "", "peers": 0} | structs.asdict(message) | {"state": str(state)}
        if before is None and state is not ContributionState.PENDING and message.id == self._growing:
            return [body | {"state": str(ContributionState.PENDING), "reason": "", "peers": 0}, body]
        return [body]

    def _pause_change(self, snapshot: Snapshot) -> list[Event]:
        allowance, before = snapshot.allowance, self._allowance
        self._allowance = allowance
        stopped, was_stopped = allowance.share <= 0, before is not None and before.share <= 0
        if stopped == was_stopped and not (stopped and before != allowance):
            return []
        return [{"event": "paused", "share": allowance.share, "until": allowance.until, "reason": allowance.reason}]

    def _leaving_change(self, snapshot: Snapshot) -> list[Event]:
        until, before = snapshot.leaving_until, self._leaving_until
        self._leaving_until = until
        return [] if until is None or until == before else [{"event": "leaving", "until": until}]

    def _problem_change(self, snapshot: Snapshot) -> list[Event]:
        shown, before = snapshot.problem, self._problem
        self._problem = shown
        return [] if shown is None or shown == before else [problem(shown)]
