"""JSON that comes from strangers, read strictly: one object, no duplicate keys, no NaN, no endless nesting. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

DEEPEST: Final = 8
NAME_SHOWN: Final = 40
LARGEST_DIGITS: Final = 20
"""No number in our files is longer; Python refuses only far longer ones, with words of its own."""

Refuse = Callable[[str], Exception]
"""Makes the exception for a phrase that says what is wrong, such as "it is not JSON"."""


def read_object(raw: bytes, limit: int, refuse: Refuse) -> dict[str, Any]:
    """The JSON object in `raw`, of at most `limit` bytes. Raises what `refuse` makes."""
    if len(raw) > limit:
        raise refuse(f"it is larger than {limit // 1024} KiB")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse("it is not UTF-8 text") from None
    reader = _Reader(refuse)
    try:
        body = json.loads(
            text,
            object_pairs_hook=reader.distinct,
            parse_constant=reader.no_constant,
            parse_int=reader.whole,
        )
    except RecursionError:
        raise refuse("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise refuse(f"it is not JSON (line {error.lineno})") from None
    if not isinstance(body, dict):
        raise refuse("it is not a JSON object")
    if _is_deeper(body, DEEPEST):
        raise refuse("it is nested too deeply")
    return body


class _Reader:
    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse

    def distinct(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for name, value in pairs:
            if name in body:
                raise self._refuse(f"{shown(name)} appears twice")
            body[name] = value
        return body

    def no_constant(self, name: str) -> NoReturn:
        raise self._refuse(f"{name} is not a number")

    def whole(self, digits: str) -> int:
        if len(digits) > LARGEST_DIGITS:
            raise self._refuse("a number in it is far too large")
        return int(digits)


def _is_deeper(value: Any, most: int) -> bool:
    """Whether objects and lists lie more than `most` deep; never looks further, so that no nesting can exhaust it."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(item, most - 1) for item in inner)


def shown(name: str) -> str:
    """A name from a stranger, fit to stand in a sentence on a terminal."""
    clean = re.sub(r"[^0-9A-Za-z_.-]", "?", name[: NAME_SHOWN + 1])
    return clean if len(clean) <= NAME_SHOWN else clean[:NAME_SHOWN] + "…"
