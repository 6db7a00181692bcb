"""The control protocol of a running skep: the answer and the commands for each request. Pure.

A request is an object with "verb"; an answer has "ok", and either the requested data or the "title" and "hint" of a
problem. All fields of a request are checked here, because any program of this user can connect.
"""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from datetime import UTC, tzinfo
from typing import Any, Final, get_type_hints

import msgspec

from skep.core.errors import BadInput, NotRunning, SkepError
from skep.core.policy.allowance import FARTHEST, Allowance
from skep.core.policy.conditions import Condition, Conditions, Reading, sensible
from skep.core.policy.decision import Holding
from skep.core.project.data import Project
from skep.core.session import explain, timeline
from skep.core.session import messages as m
from skep.core.session.phases import StageProgress
from skep.core.session.snapshot import Snapshot
from skep.core.session.wire import build
from skep.core.settings import settings as declared
from skep.core.settings.setting import Value
from skep.core.text import NOTHING, Text, as_data

Answer = dict[str, Any]
Decision = tuple[Answer, tuple[m.Command, ...]]

_AS_THEY_ARE: Final = (
    "phase",
    "allowance",
    "reactions",
    "change",
    "pause",
    "power_caps",
    "ceilings",
    "seeds",
    "joined",
    "peer_id",
    "device",
    "devices",
    "in_step",
    "client_mode",
    "relayed",
    "verified",
    "heavy",
    "progress",
    "totals",
    "problem",
    "finished",
    "waiting",
    "failures",
    "restart_at",
    "leaving_until",
    "saving",
)
"""The fields of a snapshot that are sent as they are declared."""
_TYPES: Final = get_type_hints(Snapshot)


def decide(request: dict[str, Any], snapshot: Snapshot, now: float = 0.0, zone: tzinfo = UTC) -> Decision:
    """The answer to `request`, and the commands for the engine. `now` is wall clock seconds. Raises BadInput."""
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
            raise BadInput(
                Text("control.running_skep_does_not_know", verb=str(verb)[:40]),
                Text("control.both_may_different_versions"),
            )


def _until(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FARTHEST:
        raise BadInput(Text("control.end_pause_not_moment_time"))
    return float(value)


def _values(values: Any) -> dict[str, Value]:
    if not isinstance(values, dict):
        raise BadInput(Text("control.settings_not_object_keys_values"))
    return {str(key): declared.check(str(key), value) for key, value in values.items()}


def result(answer: Answer) -> Answer:
    """The answer if it is "ok"; otherwise raises the problem in it."""
    if answer.get("ok") is True:
        return answer
    kind = BadInput if answer.get("exit_code") == BadInput.exit_code else SkepError
    try:
        title, hint = build(Text, answer["title"]), build(Text, answer["hint"])
    except (KeyError, ValueError):
        title, hint = Text("control.running_skep_did_not_understand"), NOTHING
    raise kind(title, hint)


def status(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as JSON for `skep status`; no settings, no raw manifest, no NaN."""
    body = {name: msgspec.to_builtins(getattr(snapshot, name)) for name in _AS_THEY_ARE} | {
        "project": None if snapshot.project is None else _project(snapshot.project),
        "stage": None if snapshot.stage is None else _stage(snapshot.stage),
        "conditions": _conditions(snapshot.conditions),
        "paused": snapshot.allowance.share <= 0,
        "holding": [explain.told(each) for each in snapshot.holding],
        "reaction": as_data(timeline.sentence(snapshot.reactions)),
        "remarks": [as_data(each) for each in explain.remarks(snapshot)],
        "evaluations": [asdict(each) for each in snapshot.evaluations if math.isfinite(each.loss)],
    }
    return finite(body)  # type: ignore[no-any-return]


def _conditions(seen: Conditions) -> dict[str, Any]:
    readings = {condition.value: msgspec.to_builtins(seen[condition]) for condition in Condition}
    return {"graphical": seen.graphical} | readings


def _project(project: Project) -> dict[str, Any]:
    return {field.name: getattr(project, field.name) for field in fields(Project)}


def _stage(stage: StageProgress) -> dict[str, Any]:
    return {"name": str(stage.stage), "fraction": stage.fraction, "detail": as_data(stage.detail)}


def finite(value: Any) -> Any:
    """`value` with NaN and infinities replaced by None, since JSON does not have them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def snapshot_of(body: dict[str, Any]) -> Snapshot:
    """The snapshot in an answer of `status`, for display. Raises NotRunning when it is not valid."""
    try:
        told = {name: build(_TYPES[name], body[name]) for name in (*_AS_THEY_ARE, "evaluations")}
        held = tuple(Holding(str(each["rule"]), build(Allowance, each["allowance"])) for each in body["holding"])
        project = build(Project | None, body["project"])
        stage = build(StageProgress | None, _named(body["stage"]))
        return Snapshot(holding=held, project=project, stage=stage, conditions=_seen(**body["conditions"]), **told)
    except (KeyError, ValueError, TypeError):
        raise NotRunning(
            Text("control.running_skep_answered_way_one"), Text("control.both_may_different_versions")
        ) from None


def _seen(graphical: Any, **readings: Any) -> Conditions:
    seen = {build(Condition, name): build(Reading[Any], reading) for name, reading in readings.items()}
    return Conditions(build(bool, graphical)).with_seen(sensible(seen))


def _named(stage: Any) -> Any:
    return stage and {"stage": stage["name"], "fraction": stage["fraction"], "detail": stage["detail"]}
