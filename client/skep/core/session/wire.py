"""Encoding of the messages between engine and worker as JSON lines.

One message is one line, an object with "type" and the message's fields. Decoding is strict: an unknown type, a missing
or extra field or a wrong type raises WireError, since both ends ship together and a mismatch is a bug or an attack.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from skep.core.session.messages import FromWorker, ToWorker
from skep.core.strict_json import read_object, shown

LINE_LIMIT: Final = 4 * 1024 * 1024
"""Maximum length of a line in bytes; the start message contains the manifest and the shard index."""
FROM_WORKER_LIMIT: Final = 64 * 1024
"""The same of the worker's lines, which go into the ledger and onto the screen."""
LARGEST: Final = 2**53
"""No number of the worker is larger: the ledger holds 64 bits, also of the sum of many."""
_UNSEEN: Final = dict.fromkeys((*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)), "\ufffd")
"""Control characters, which a terminal obeys, and halves of characters, which no file takes. Tabs and new lines stay."""

DEEPEST: Final = 32
"""Maximum nesting of objects and lists in a message: a Text may contain others, each of which adds 3 or 4 levels."""


class WireError(ValueError):
    """A line that is not a valid message."""


def encode(message: ToWorker | FromWorker) -> bytes:
    """The message as one JSON line, newline included. Raises ValueError for a number that is not finite."""
    return json.dumps(msgspec.to_builtins(message), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode_to_worker(line: bytes) -> ToWorker:
    """Raises WireError."""
    return cast("ToWorker", build(ToWorker, read_object(line, LINE_LIMIT, WireError, DEEPEST)))


def decode_from_worker(line: bytes) -> FromWorker:
    """Raises WireError. Unseen characters are replaced: peers may be able to put them into a library's error."""
    value = _cleaned(read_object(line, FROM_WORKER_LIMIT, WireError, DEEPEST))
    return cast("FromWorker", build(FromWorker, value))


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return value.translate(_UNSEEN)
        case dict():
            return {_cleaned(name): _cleaned(each) for name, each in value.items()}
        case list():
            return [_cleaned(each) for each in value]
        case int() if abs(value) > LARGEST:
            raise WireError("a number is far too large")
        case _:
            return value


def build(kind: Any, value: Any) -> Any:
    """`value`, as parsed from JSON, as an instance of the annotated type `kind`. Raises WireError."""
    try:
        built = msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError) as error:  # the latter for a name that is half a character
        raise WireError(str(error).encode("ascii", "backslashreplace").decode()) from None
    if (name := _unknown(value, msgspec.to_builtins(built))) is not None:
        raise WireError(f"unknown field {shown(name)}")
    return built


def _unknown(given: Any, known: Any) -> str | None:
    """The name of a field of `given` that is not in `known`: msgspec passes over those of dataclasses."""
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(given, dict):
        if beside := given.keys() - known.keys():
            return str(min(beside))
        pairs = ((each, known[name]) for name, each in given.items())
    elif isinstance(given, list):
        pairs = zip(given, known, strict=False)
    return next((name for each, fits in pairs if (name := _unknown(each, fits)) is not None), None)
