"""Messages as JSON lines: how the engine and the worker talk, and the only place that knows.

One message is one line, an object with "type" and the message's fields. Decoding is strict: an unknown type, a missing
or extra field or a wrong type raises WireError, since both ends ship together and a mismatch is a bug or an attack.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from typing import Any, Final

from skep.core import messages as m

LINE_LIMIT: Final = 4 * 1024 * 1024
"""Longest line in bytes either side accepts; the start message carries the manifest and the shard index."""

TO_WORKER: Final = (m.StartTraining, m.SetShare, m.ShardArrived, m.ShardFailed, m.FinishTraining, m.StopTraining)
FROM_WORKER: Final = (
    m.WorkerStage,
    m.WorkerJoined,
    m.WorkerProgress,
    m.WorkerEvaluated,
    m.WorkerPaused,
    m.WorkerMemory,
    m.ContributionPending,
    m.ContributionConfirmed,
    m.ContributionLost,
    m.ShardWanted,
    m.WorkerFailed,
)

FromWorker = (
    m.WorkerStage
    | m.WorkerJoined
    | m.WorkerProgress
    | m.WorkerEvaluated
    | m.WorkerPaused
    | m.WorkerMemory
    | m.ContributionPending
    | m.ContributionConfirmed
    | m.ContributionLost
    | m.ShardWanted
    | m.WorkerFailed
)


class WireError(ValueError):
    """A line that is not one of our messages."""


def encode(message: m.ToWorker | FromWorker) -> bytes:
    """The message as one JSON line, newline included."""
    body = {"type": type(message).__name__} | dataclasses.asdict(message)
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode_to_worker(line: bytes) -> m.ToWorker:
    message = _decode(line, TO_WORKER)
    return typing.cast("m.ToWorker", message)


def decode_from_worker(line: bytes) -> FromWorker:
    message = _decode(line, FROM_WORKER)
    return typing.cast("FromWorker", message)


def _decode(line: bytes, known: tuple[type, ...]) -> object:
    if len(line) > LINE_LIMIT:
        raise WireError(f"line of {len(line)} bytes is over the limit of {LINE_LIMIT}")
    try:
        body = json.loads(line, parse_constant=_refuse, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None
    if not isinstance(body, dict):
        raise WireError("not an object")
    name = body.pop("type", None)
    for kind in known:
        if kind.__name__ == name:
            return build(kind, body, name)
    raise WireError(f"unknown message {name!r}")


def _refuse(name: str) -> None:
    raise WireError(f"{name} is not a number")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise WireError("a field stands there twice")
    return body


def build(kind: Any, value: Any, where: str) -> Any:
    """`value`, as parsed from JSON, as an instance of the annotated type `kind`; `where` names it in errors.

    Knows what our messages use: dataclasses, enums, tuples and dicts of one type, unions with None, scalars.
    Raises WireError.
    """
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, where)
    if origin is types.UnionType or origin is typing.Union:
        return _build_union(typing.get_args(kind), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise WireError(f"{where} is not a list")
        return tuple(build(typing.get_args(kind)[0], item, where) for item in value)
    if origin is dict:
        if not isinstance(value, dict):
            raise WireError(f"{where} is not an object")
        return {key: build(typing.get_args(kind)[1], item, f"{where}.{key}") for key, item in value.items()}
    return _build_scalar(kind, value, where)


def _build_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise WireError(f"{where} is not an object")
    hints, required = _fields(kind)
    if missing := required - value.keys():
        raise WireError(f"{where} lacks {', '.join(sorted(missing))}")
    if extra := value.keys() - hints.keys():
        raise WireError(f"{where} has unknown {', '.join(sorted(extra))}")
    return kind(**{name: build(hints[name], item, f"{where}.{name}") for name, item in value.items()})


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of a dataclass's fields by name, and those it must be given. Kept: finding them out takes most of the time."""
    required = (
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    return typing.get_type_hints(kind), frozenset(required)


def _build_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    problems = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return build(kind, value, where)
            except WireError as error:
                problems.append(str(error))
    raise WireError("; ".join(problems) or f"{where} may not be null")


def _build_scalar(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise WireError(f"{where} is not a {kind.__name__}") from None
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(value, where)
    if type(value) is not kind:
        raise WireError(f"{where} is not {kind.__name__}")
    return value


def _finite(value: float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WireError(f"{where} is not a finite number")
    return number
