"""The core's messages in English, for tests that compare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec
import pytest

from skep.core.text import Problem, Text, from_data, verbatim
from skep.language.translator import ENGLISH, translator

_ENGLISH = translator(ENGLISH)


def in_english(message: Any) -> Any:
    """A message, or the title of a problem or an error, in words; any other value unchanged."""
    match message:
        case Text():
            return _ENGLISH.say(message)
        case Problem() | BaseException():
            said = getattr(message, "title", None) or getattr(message, "text", None) or getattr(message, "reason", None)
            return _ENGLISH.say(said) if isinstance(said, Text) else str(message)
        case {"id": str(), "args": dict(), **rest} if not rest:
            return _ENGLISH.say(from_data(message))
        case dict():
            return {name: in_english(value) for name, value in message.items()}
        case list() | tuple():
            return type(message)(in_english(each) for each in message)
        case _:
            return message


@contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...], match: str = "") -> Iterator[Any]:
    """As pytest.raises, for errors whose words are data."""
    with pytest.raises(kind) as caught:
        yield caught
    assert re.search(match, in_english(caught.value)), f"{match!r} is not in {in_english(caught.value)!r}"


def spoken(value: Any) -> Any:
    """`value` with every message replaced by its English words, for comparison with results of `verbatim`."""
    if isinstance(value, Text):
        return verbatim(in_english(value)) if value else value
    if isinstance(value, list | tuple):
        return type(value)(spoken(each) for each in value)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{name: spoken(each) for name, each in msgspec.structs.asdict(value).items()}
        )
    if is_dataclass(value) and not isinstance(value, type):
        inner = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return replace(value, **{name: spoken(each) for name, each in inner.items()})
    return value
