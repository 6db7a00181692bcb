"""Translatable messages for the user as data: an id and arguments. `skep.language` translates them for display.

A `Text` passes unchanged through the engine, the worker's pipe and the ledger, so the language can be chosen for each
display. Arguments are raw values (bytes, seconds, shares from 0 to 1); the catalogue's entry defines their format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

Value: TypeAlias = "str | int | float | bool | Text | tuple[str | Text, ...]"
"""An argument. A `str` is shown unchanged: a path, a title, another program's message."""


@dataclass(frozen=True, slots=True, init=False)
class Text:
    """One message: the id of its entry in the catalogues, and the arguments that the entry names.

    The id must be a literal in the call: a test compares all ids with the catalogues.
    """

    id: str
    args: Mapping[str, Value]

    def __init__(self, id_: str, /, **args: Value) -> None:
        object.__setattr__(self, "id", id_)
        object.__setattr__(self, "args", args)

    def __hash__(self) -> int:
        return hash((self.id, tuple(sorted(self.args))))

    def __bool__(self) -> bool:
        return bool(self.id)

    def __format__(self, _spec: str) -> str:
        """Raises TypeError, since an f-string would show the id."""
        raise TypeError(f"{self.id} is put into words by a translator only")

    def __str__(self) -> str:
        """For logs: "web.no_answer host='example.org'"."""
        return " ".join([self.id, *(f"{name}={_shown(value)}" for name, value in self.args.items())])


def _shown(value: object) -> str:
    return f"({value!s})" if isinstance(value, Text) else repr(value)


NOTHING: Final = Text("")
"""The empty message; it is false."""


def verbatim(words: str) -> Text:
    """A message that needs no translation: a name, a version, another program's message."""
    return Text("text.verbatim", words=words)


def sentences(*said: Text) -> Text:
    """Whole sentences joined to one message; empty ones are omitted."""
    return Text("text.sentences", said=tuple(each for each in said if each))


def as_data(message: Text) -> dict[str, Any]:
    """`message` for JSON: {"id": …, "args": {…}}; a message within it likewise."""
    return {"id": message.id, "args": {name: _plain(value) for name, value in message.args.items()}}


def _plain(value: Value) -> Any:
    if isinstance(value, Text):
        return as_data(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def from_data(data: object) -> Text:
    """The message from the data of `as_data`, also after a conversion to JSON and back. Raises ValueError."""
    match data:
        case {"id": str(id_), "args": dict(args), **rest} if not rest:
            return Text(id_, **{str(name): _value(value) for name, value in args.items()})
        case _:
            raise ValueError("no message")


def _value(data: object) -> Value:
    match data:
        case str() | bool() | int() | float():
            return data
        case list() | tuple():
            return tuple(_part(each) for each in data)
        case _:
            return from_data(data)


def _part(data: object) -> str | Text:
    return data if isinstance(data, str) else from_data(data)


def packed(message: Text) -> str:
    """`message` as one line of JSON, equal for equal messages; "" for the empty message."""
    return json.dumps(as_data(message), ensure_ascii=False, sort_keys=True) if message else ""


def unpacked(line: str) -> Text:
    """The message from the output of `packed`. Raises ValueError."""
    return from_data(json.loads(line)) if line else NOTHING


class Remedy(StrEnum):
    """The place where the user can solve a problem; a remedy may also be "setting:" and a setting's key."""

    DIAGNOSTICS = "diagnostics"
    CONNECTION = "connection"
    PROJECTS = "projects"
    SETTINGS = "settings"
    REPORT = "report"


@dataclass(frozen=True)
class Problem:
    """What happened, in one sentence, and what the user can do about it; `remedy` is a Remedy or "setting:KEY"."""

    title: Text
    hint: Text = NOTHING
    remedy: str = field(default=Remedy.DIAGNOSTICS.value, compare=False)
