"""What a running skep answers when another terminal asks: request in, answer and commands out. Pure.

It must not know how requests travel. A request is an object with "verb"; an answer has "ok", and either what was asked
for or the "title" and "hint" of a problem. Other fields of a request are checked here: any program of this user can
connect.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import Any, Final

from skep.core import explain, timeline
from skep.core import messages as m
from skep.core import settings as declared
from skep.core.conditions import Condition, Conditions, Reading, Source
from skep.core.errors import BadInput, NotRunning, SkepError
from skep.core.model import (
    Allowance,
    Change,
    Evaluation,
    PauseState,
    Phase,
    Problem,
    Project,
    Reaction,
    StageProgress,
    SwarmProgress,
    Totals,
)
from skep.core.policy import Holding
from skep.core.rules import ALL
from skep.core.snapshot import Snapshot
from skep.core.wire import build

Answer = dict[str, Any]
Decision = tuple[Answer, tuple[m.Command, ...]]

FARTHEST: Final = 1e11
"""Seconds since the epoch; a later end of a pause is no date any clock shows."""


def decide(request: dict[str, Any], snapshot: Snapshot, now: float = 0.0, zone: tzinfo = UTC) -> Decision:
    """The answer to `request`, and the commands the engine is to carry out. `now` is wall clock seconds."""
    try:
        return _decide(request, snapshot, now, zone)
    except SkepError as error:
        return {"ok": False, "exit_code": error.exit_code, "title": error.title, "hint": error.hint}, ()


def _decide(request: dict[str, Any], snapshot: Snapshot, now: float, zone: tzinfo) -> Decision:
    match request.get("verb"):
        case "status":
            return {"ok": True, "status": status(snapshot)}, ()
        case "explain":
            return {"ok": True, "explanation": explain.explained(snapshot, request.get("if") or (), now, zone)}, ()
        case "pause":
            return {"ok": True}, (m.Pause(_until(request.get("until"))),)
        case "resume":
            return {"ok": True}, (m.Resume(),)
        case "leave":
            return {"ok": True}, (m.Leave(now=request.get("now") is True),)
        case "settings":
            return {"ok": True}, (m.ChangeSettings(_values(request.get("values"))),)
        case verb:
            raise BadInput(f"The running skep does not know “{str(verb)[:40]}”.", "Both may be of different versions.")


def _until(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FARTHEST:
        raise BadInput("The end of the pause is not a moment in time.")
    return float(value)


def _values(values: Any) -> dict[str, bool | int | float | str]:
    if not isinstance(values, dict):
        raise BadInput("The settings are not an object of keys and values.")
    return {str(key): declared.check(str(key), value) for key, value in values.items()}


def result(answer: Answer) -> Answer:
    """The answer itself, when it is a good one; else raises the problem it carries."""
    if answer.get("ok") is True:
        return answer
    kind = BadInput if answer.get("exit_code") == BadInput.exit_code else SkepError
    raise kind(str(answer.get("title") or "The running skep did not understand."), str(answer.get("hint") or ""))


def status(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as JSON for `skep status`; no settings, no raw manifest, no NaN."""
    body = {
        "phase": str(snapshot.phase),
        "project": None if snapshot.project is None else _project(snapshot.project),
        "stage": None if snapshot.stage is None else _stage(snapshot.stage),
        "allowance": asdict(snapshot.allowance),
        "paused": snapshot.allowance.share <= 0,
        "holding": [_holding(each) for each in snapshot.holding],
        "conditions": asdict(snapshot.conditions),
        "reactions": [asdict(each) for each in snapshot.reactions],
        "reaction": timeline.sentence(snapshot.reactions),
        "remarks": list(explain.remarks(snapshot)),
        "change": None if snapshot.change is None else asdict(snapshot.change),
        "pause": None if snapshot.pause is None else asdict(snapshot.pause),
        "peer_id": snapshot.peer_id,
        "device": snapshot.device,
        "client_mode": snapshot.client_mode,
        "heavy": snapshot.heavy,
        "progress": None if snapshot.progress is None else asdict(snapshot.progress),
        "evaluations": [asdict(each) for each in snapshot.evaluations if math.isfinite(each.loss)],
        "totals": asdict(snapshot.totals),
        "problem": None if snapshot.problem is None else asdict(snapshot.problem),
        "restart_at": snapshot.restart_at,
        "leaving_until": snapshot.leaving_until,
    }
    return finite(body)  # type: ignore[no-any-return]


def _holding(each: Holding) -> dict[str, Any]:
    rule = ALL[each.rule]
    return asdict(each) | {"label": rule.label, "setting": rule.setting}


def _project(project: Project) -> dict[str, Any]:
    body = asdict(project)
    del body["manifest"]
    return body


def _stage(stage: StageProgress) -> dict[str, Any]:
    return {"name": str(stage.stage), "fraction": stage.fraction, "detail": stage.detail}


def finite(value: Any) -> Any:
    """`value` with NaN and infinities, which JSON does not have, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def snapshot_of(body: dict[str, Any]) -> Snapshot:
    """What `status` wrote, as a snapshot to show. Raises NotRunning when it is none."""
    try:
        return Snapshot(
            phase=Phase(body["phase"]),
            allowance=build(Allowance, body["allowance"], "allowance"),
            holding=tuple(
                Holding(str(each["rule"]), build(Allowance, each["allowance"], "holding")) for each in body["holding"]
            ),
            conditions=conditions_of(body["conditions"]),
            reactions=build(tuple[Reaction, ...], body["reactions"], "reactions"),
            change=_optional(Change, body["change"]),
            pause=_optional(PauseState, body["pause"]),
            project=_optional(Project, body["project"], manifest=""),
            stage=_optional(StageProgress, _named(body["stage"])),
            peer_id=str(body["peer_id"]),
            device=str(body["device"]),
            client_mode=build(bool, body["client_mode"], "client_mode"),
            heavy=build(bool, body["heavy"], "heavy"),
            progress=_optional(SwarmProgress, body["progress"]),
            evaluations=build(tuple[Evaluation, ...], body["evaluations"], "evaluations"),
            totals=build(Totals, body["totals"], "totals"),
            problem=_optional(Problem, body["problem"]),
            restart_at=build(float | None, body["restart_at"], "restart_at"),
            leaving_until=build(float | None, body["leaving_until"], "leaving_until"),
        )
    except (KeyError, ValueError, TypeError):
        raise NotRunning(
            "The running skep answered in a way this one does not understand.", "Both may be of different versions."
        ) from None


def conditions_of(body: dict[str, Any]) -> Conditions:
    """What `asdict` made of conditions. Raises KeyError, ValueError, TypeError."""
    seen = {condition: _reading(body[condition.value]) for condition in Condition}
    return Conditions(graphical=build(bool, body["graphical"], "graphical")).with_seen(seen)


def _reading(body: dict[str, Any]) -> Reading[Any]:
    value = build(bool | float | None, body["value"], "value")
    return Reading(value, Source(body["source"]), str(body["note"]))


def _optional(kind: type[Any], body: Any, **more: Any) -> Any:
    return None if body is None else build(kind, body | more, kind.__name__)


def _named(stage: Any) -> Any:
    return stage and {"stage": stage["name"], "fraction": stage["fraction"], "detail": stage["detail"]}
