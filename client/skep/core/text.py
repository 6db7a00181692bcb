"""What skep has to say to a person, as data: an id and arguments. `skep.language` turns it into words at the edge.

A `Text` travels through the engine, the worker's pipe and the ledger unchanged, so the language can be chosen where it is
shown. Arguments are raw values (bytes, seconds, shares from 0 to 1); the catalogue's entry says how each is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

Value: TypeAlias = "str | int | float | bool | Text | tuple[str | Text, ...]"
"""An argument. A `str` is shown as it is: a path, a title, another program's own words."""


@dataclass(frozen=True, slots=True, init=False)
class Text:
    """One message: the id of its entry in the catalogues, and the arguments that the entry names.

    The id must be a literal where it is made: a test compares every one with the catalogues.
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
        """Refused: an f-string would show the id. Raises TypeError."""
        raise TypeError(f"{self.id} is put into words by a translator only")

    def __str__(self) -> str:
        """For logs: "web.no_answer host='example.org'"."""
        return " ".join([self.id, *(f"{name}={_shown(value)}" for name, value in self.args.items())])


def _shown(value: object) -> str:
    return f"({value!s})" if isinstance(value, Text) else repr(value)


NOTHING: Final = Text("")
"""Says nothing; is false."""


def verbatim(words: str) -> Text:
    """What needs no translation: a name, a version, another program's own words."""
    return Text("text.verbatim", words=words)


def sentences(*said: Text) -> Text:
    """Whole sentences, one after the other; what says nothing is left out."""
    return Text("text.sentences", said=tuple(each for each in said if each))


def as_data(message: Text) -> dict[str, Any]:
    """`message` for JSON: {"id": …, "args": {…}}; a message within it likewise."""
    return {"id": message.id, "args": {name: _plain(value) for name, value in message.args.items()}}


def _plain(value: Value) -> Any:
    if isinstance(value, Text):
        return as_data(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def from_data(data: object) -> Text:
    """What `as_data` made, also when JSON was in between. Raises ValueError."""
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
    """`message` as one line of JSON, always the same for the same message; "" for none."""
    return json.dumps(as_data(message), ensure_ascii=False, sort_keys=True) if message else ""


def unpacked(line: str) -> Text:
    """What `packed` wrote. Raises ValueError."""
    return from_data(json.loads(line)) if line else NOTHING


class Remedy(StrEnum):
    """Where a front end leads a person who has a problem; beside these it may be "setting:" and a setting's key."""

    DIAGNOSTICS = "diagnostics"
    PROJECTS = "projects"
    SETTINGS = "settings"
    REPORT = "report"


@dataclass(frozen=True)
class Problem:
    """What happened, in one sentence, and what the person can do about it; `remedy` is a Remedy, or a setting's."""

    title: Text
    hint: Text = NOTHING
    remedy: str = field(default=Remedy.DIAGNOSTICS.value, compare=False)
