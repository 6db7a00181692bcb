"""Strict parsing of untrusted JSON: one object, no duplicate keys, no NaN, limited nesting. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from skep.core.text import Text

DEEPEST: Final = 8
NAME_SHOWN: Final = 40
LARGEST_DIGITS: Final = 20
"""Maximum digits of a number in skep's files; Python's own limit is far higher, with its own error message."""

Refuse = Callable[[Text], Exception]
"""Makes the exception for a phrase that describes the problem, such as "it is not JSON"."""


def read_object(raw: bytes, limit: int, refuse: Refuse, deepest: int = DEEPEST) -> dict[str, Any]:
    """The JSON object in `raw`, of at most `limit` bytes and `deepest` levels. Raises the exception from `refuse`."""
    if len(raw) > limit:
        raise refuse(Text("json.larger_than_kib", limit=limit // 1024))
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse(Text("json.not_utf_8_text")) from None
    reader = _Reader(refuse)
    try:
        body = json.loads(
            decoded,
            object_pairs_hook=reader.distinct,
            parse_constant=reader.no_constant,
            parse_int=reader.whole,
            parse_float=reader.fraction,
        )
    except RecursionError:
        raise refuse(Text("json.nested_too_deeply")) from None
    except json.JSONDecodeError as error:
        raise refuse(Text("json.not_json_line", lineno=error.lineno)) from None
    if not isinstance(body, dict):
        raise refuse(Text("json.not_json_object"))
    if _is_deeper(body, deepest):
        raise refuse(Text("json.nested_too_deeply"))
    return body


@dataclass(frozen=True)
class _Reader:
    refuse: Refuse

    def distinct(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for name, value in pairs:
            if name in body:
                raise self.refuse(Text("json.appears_twice", name=shown(name)))
            body[name] = value
        return body

    def no_constant(self, name: str) -> NoReturn:
        raise self.refuse(Text("json.not_number", name=name))

    def whole(self, digits: str) -> int:
        if len(digits) > LARGEST_DIGITS:
            raise self.refuse(Text("json.number_far_too_large"))
        return int(digits)

    def fraction(self, digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise self.refuse(Text("json.number_far_too_large"))
        return number


def _is_deeper(value: Any, most: int) -> bool:
    """Whether objects and lists are nested more than `most` deep; never descends further, to limit the recursion."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(item, most - 1) for item in inner)


def shown(name: str) -> str:
    """An untrusted name in a form that is safe in a sentence on a terminal."""
    clean = re.sub(r"[^0-9A-Za-z_.-]", "?", name[: NAME_SHOWN + 1])
    return clean if len(clean) <= NAME_SHOWN else clean[:NAME_SHOWN] + "…"
