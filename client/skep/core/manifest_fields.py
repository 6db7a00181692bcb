"""The kinds of fields a manifest is made of: each reads one JSON value, or says in a phrase what is wrong with it.

A phrase goes on from the field's name: "must be a whole number from 1 to 64". Pure data and functions.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from skep.core.addresses import is_peer_address, is_web_address
from skep.core.plain_text import plain
from skep.core.strict_json import shown

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "ed25519:"
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class FieldError(ValueError):
    """What is wrong with a value; `path` is the field's full name."""

    def __init__(self, path: str, phrase: str) -> None:
        super().__init__(f"{path} {phrase}")
        self.path, self.phrase = path, phrase


class Later(FieldError):
    """A value that is legal in a manifest, but whose effect comes with a later version of skep."""


class Field(Protocol):
    def read(self, value: Any, path: str) -> Any:
        """The checked value. Raises FieldError."""


@dataclass(frozen=True)
class Whole:
    least: int
    most: int

    def read(self, value: Any, path: str) -> int:
        if type(value) is not int or not self.least <= value <= self.most:
            one = self.least == self.most
            raise FieldError(
                path, f"must be {self.least}" if one else f"must be a whole number from {self.least} to {self.most}"
            )
        return value


@dataclass(frozen=True)
class Number:
    least: float
    most: float
    above: bool = False
    """Whether `least` itself is excluded."""
    why: str = ""
    """Where the bounds come from, when that helps."""

    def read(self, value: Any, path: str) -> float:
        fine = type(value) in (int, float) and math.isfinite(value) and self.least <= value <= self.most
        if not fine or (self.above and value == self.least):
            words = f"above {self.least:g} and up to" if self.above else f"from {self.least:g} to"
            raise FieldError(path, f"must be a number {words} {self.most:g}{self.why}")
        return float(value)


@dataclass(frozen=True)
class Flag:
    def read(self, value: Any, path: str) -> bool:
        if type(value) is not bool:
            raise FieldError(path, "must be true or false")
        return value


@dataclass(frozen=True)
class Text:
    """Plain text: normalised (NFC), without hidden characters, at most `most` characters."""

    most: int
    least: int = 1

    def read(self, value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise FieldError(path, "must be text")
        clean = plain(value)
        if not self.least <= len(clean) <= self.most:
            raise FieldError(path, f"must be text of {self.least} to {self.most} characters")
        return clean


@dataclass(frozen=True)
class Pattern:
    expression: str
    words: str

    def read(self, value: Any, path: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.expression, value):
            raise FieldError(path, f"must be {self.words}")
        return value


@dataclass(frozen=True)
class Choice:
    """One of the names in `now`; those in `later` are legal, but refused in words."""

    now: tuple[str, ...]
    later: tuple[str, ...] = ()

    def read(self, value: Any, path: str) -> str:
        if isinstance(value, str) and value in self.now:
            return value
        if isinstance(value, str) and value in self.later:
            raise Later(path, f'"{value}" comes with a later version of skep')
        raise FieldError(path, f"must be {one_of(self.now)}")


def one_of(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


@dataclass(frozen=True)
class Nullable:
    field: Field

    def read(self, value: Any, path: str) -> Any:
        return None if value is None else self.field.read(value, path)


@dataclass(frozen=True)
class Tokenizer:
    """Bytes as tokens, or a tokenizer file by hash: an object with these fields, handed to `make`."""

    fields: Mapping[str, Field]
    make: Callable[..., Any]

    def read(self, value: Any, path: str) -> Any:
        if value == "bytes":
            return "bytes"
        if isinstance(value, dict):
            return Object(self.make, self.fields).read(value, path)
        raise FieldError(path, 'must be "bytes", or an object with url and sha256')


@dataclass(frozen=True)
class Several:
    """A list of `least` to `most` values."""

    field: Field
    least: int
    most: int

    def read(self, value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            count = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            raise FieldError(path, f"must be a list of {count} values")
        return tuple(self.field.read(item, f"{path}[{number}]") for number, item in enumerate(value))


@dataclass(frozen=True)
class PublicKey:
    def read(self, value: Any, path: str) -> bytes:
        key = b""
        if isinstance(value, str) and value.startswith(KEY_PREFIX):
            with contextlib.suppress(ValueError, binascii.Error):
                key = base64.b64decode(value.removeprefix(KEY_PREFIX), validate=True)
        if len(key) != KEY_BYTES:
            raise FieldError(path, 'must be "ed25519:" and a key of 32 bytes in base64')
        return key


@dataclass(frozen=True)
class Moment:
    def read(self, value: Any, path: str) -> datetime:
        if isinstance(value, str) and _TIME.fullmatch(value):
            with contextlib.suppress(ValueError):
                return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        raise FieldError(path, "must be a time such as 2027-12-31T00:00:00Z")


@dataclass(frozen=True)
class WebAddress:
    """https, or plain http on this computer itself."""

    empty: bool = False

    def read(self, value: Any, path: str) -> str:
        if value == "" and self.empty:
            return ""
        if not isinstance(value, str) or len(value) > 2000 or not is_web_address(value):  # noqa: PLR2004 - as browsers
            raise FieldError(path, "must be an https address (http only on this computer itself)")
        return value


@dataclass(frozen=True)
class PeerAddress:
    """A libp2p multiaddress: /ip4|ip6|dns|dns4|dns6/HOST/tcp|udp/PORT[/…]/p2p/ID."""

    def read(self, value: Any, path: str) -> str:
        if isinstance(value, str) and len(value) <= 300 and is_peer_address(value):  # noqa: PLR2004 - generous
            return value
        raise FieldError(path, "must be an address such as /ip4/203.0.113.7/tcp/31337/p2p/Qm…")


@dataclass(frozen=True)
class Object:
    """An object with exactly these fields, handed to `make` by name. `optional` ones are None when left out."""

    make: Callable[..., Any]
    fields: Mapping[str, Field]
    optional: Mapping[str, Field] | None = None

    def read(self, value: Any, path: str) -> Any:
        optional = self.optional or {}
        if not isinstance(value, dict):
            raise FieldError(path or "the manifest", "must be an object")
        inside = f"{path}." if path else ""
        for name in value:
            if name not in self.fields and name not in optional:
                raise FieldError(f"{inside}{shown(name)}", "is not a known field")
        for name in self.fields:
            if name not in value:
                raise FieldError(f"{inside}{name}", "is missing")
        known = {**self.fields, **optional}
        # every field is checked before any is refused as coming later
        late: list[Later] = []
        read: dict[str, Any] = {}
        for name, given in value.items():
            try:
                read[name] = known[name].read(given, f"{inside}{name}")
            except Later as error:
                late.append(error)
        if late:
            raise late[0]
        return self.make(**read)


@dataclass(frozen=True)
class Variant:
    """An object whose field `tag` names its kind; each kind has fields of its own, and those of others are refused."""

    tag: str
    kinds: Mapping[str, Object]

    def read(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise FieldError(path, "must be an object")
        if self.tag not in value:
            raise FieldError(f"{path}.{self.tag}", "is missing")
        kind: str = Choice(tuple(self.kinds)).read(value[self.tag], f"{path}.{self.tag}")
        own = self.kinds[kind]
        elsewhere = {name for other in self.kinds.values() for name in other.fields} - own.fields.keys()
        for name in value:
            if name in elsewhere:
                raise FieldError(f"{path}.{name}", f"does not belong to {kind}")
        rest = {name: given for name, given in value.items() if name != self.tag}
        return Object(functools.partial(own.make, **{self.tag: kind}), own.fields).read(rest, path)


HASH: Final = Pattern(_HASH.pattern, "a SHA-256 in 64 lower-case hex digits")
