"""The kinds of fields of a manifest. Each checks one JSON value, or raises an error with a phrase for the problem.

A phrase follows the field's name in a sentence: "must be a whole number from 1 to 64". Pure data and functions.
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
from types import UnionType
from typing import Annotated, Any, Final, Literal, Protocol, get_args, get_origin, get_type_hints

from skep.core.plain_text import plain
from skep.core.project.addresses import is_peer_address, is_web_address
from skep.core.strict_json import shown
from skep.core.text import NOTHING, Text

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "ed25519:"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class FieldError(ValueError):
    """A field has an invalid value; `path` is the field's full name."""

    def __init__(self, path: str | Text, phrase: Text) -> None:
        self.path, self.phrase = path, phrase
        super().__init__(str(self.text))

    @property
    def text(self) -> Text:
        """As "sync.target_batch_size must be a whole number …"."""
        return Text("field.wrong", path=self.path, phrase=self.phrase)


class Later(FieldError):
    """A value is legal in a manifest, but only a later version of skep supports it."""


class Field(Protocol):
    def read(self, value: Any, path: str) -> Any:
        """The checked value. Raises FieldError."""


@dataclass(frozen=True)
class Whole:
    least: int
    most: int

    def read(self, value: Any, path: str) -> int:
        if type(value) is not int or not self.least <= value <= self.most:
            phrase = Text("field.must_whole_number_from", least=self.least, most=self.most)
            raise FieldError(path, Text("field.must_be_least", least=self.least) if self.least == self.most else phrase)
        return value


@dataclass(frozen=True)
class Number:
    least: float
    most: float
    above: bool = False
    """Whether `least` itself is excluded."""
    why: Text = NOTHING
    """The reason for the bounds, where it helps the reader."""

    def read(self, value: Any, path: str) -> float:
        fine = type(value) in (int, float) and math.isfinite(value) and self.least <= value <= self.most
        if not fine or (self.above and value == self.least):
            phrase = Text(
                "field.must_number_above" if self.above else "field.must_number", least=self.least, most=self.most
            )
            raise FieldError(path, Text("field.because", phrase=phrase, why=self.why) if self.why else phrase)
        return float(value)


@dataclass(frozen=True)
class Flag:
    def read(self, value: Any, path: str) -> bool:
        if type(value) is not bool:
            raise FieldError(path, Text("field.must_true_false"))
        return value


@dataclass(frozen=True)
class PlainText:
    """Plain text: normalised (NFC), without hidden characters, at most `most` characters."""

    most: int
    least: int = 1

    def read(self, value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise FieldError(path, Text("field.must_text"))
        clean = plain(value)
        if not self.least <= len(clean) <= self.most:
            raise FieldError(path, Text("field.must_text_characters", least=self.least, most=self.most))
        return clean


@dataclass(frozen=True)
class Pattern:
    expression: str
    words: Text

    def read(self, value: Any, path: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.expression, value):
            raise FieldError(path, Text("field.must_be_words", words=self.words))
        return value


@dataclass(frozen=True)
class Choice:
    """One of the names in `now`; those in `later` are legal, but raise Later."""

    now: tuple[str, ...]
    later: tuple[str, ...] = ()

    def read(self, value: Any, path: str) -> str:
        if isinstance(value, str) and value in self.now:
            return value
        if isinstance(value, str) and value in self.later:
            raise Later(path, Text("field.comes_later_version_skep", value=value))
        raise FieldError(path, Text("field.must_be_one_of", one_of=one_of(self.now)))


def one_of(names: tuple[str, ...]) -> Text:
    quoted = tuple(f'"{name}"' for name in names)
    if len(quoted) == 1:
        return Text("field.one", name=quoted[0])
    return Text("field.one_of", names=quoted[:-1], last=quoted[-1])


@dataclass(frozen=True)
class Nullable:
    field: Field

    def read(self, value: Any, path: str) -> Any:
        return None if value is None else self.field.read(value, path)


@dataclass(frozen=True)
class Tokenizer:
    """Bytes as tokens, or a tokenizer file identified by its hash: an object declared by the dataclass `file`."""

    file: Callable[..., Any]

    def read(self, value: Any, path: str) -> Any:
        if value == "bytes":
            return "bytes"
        if isinstance(value, dict):
            return declared(self.file).read(value, path)
        raise FieldError(path, Text("field.must_bytes_object_url_sha256"))


@dataclass(frozen=True)
class Several:
    """A list of `least` to `most` values."""

    field: Field
    least: int
    most: int

    def read(self, value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            phrase = Text("field.must_list_of", count=self.least)
            if self.least != self.most:
                phrase = Text("field.must_list_values", least=self.least, most=self.most)
            raise FieldError(path, phrase)
        return tuple(self.field.read(item, f"{path}[{number}]") for number, item in enumerate(value))


@dataclass(frozen=True)
class PublicKey:
    def read(self, value: Any, path: str) -> bytes:
        key = b""
        if isinstance(value, str) and value.startswith(KEY_PREFIX):
            with contextlib.suppress(ValueError, binascii.Error):
                key = base64.b64decode(value.removeprefix(KEY_PREFIX), validate=True)
        if len(key) != KEY_BYTES:
            raise FieldError(path, Text("field.must_ed25519_key_32_bytes"))
        return key


def key_text(public: bytes) -> str:
    """A raw public key in the form that `PublicKey` reads."""
    return KEY_PREFIX + base64.b64encode(public).decode()


@dataclass(frozen=True)
class Moment:
    def read(self, value: Any, path: str) -> datetime:
        if isinstance(value, str) and _TIME.fullmatch(value):
            with contextlib.suppress(ValueError):
                return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        raise FieldError(path, Text("field.must_time_such_2027_12"))


@dataclass(frozen=True)
class WebAddress:
    """An https address, or a plain http address of this computer."""

    empty: bool = False

    def read(self, value: Any, path: str) -> str:
        if value == "" and self.empty:
            return ""
        if not isinstance(value, str) or len(value) > 2000 or not is_web_address(value):  # noqa: PLR2004 - as browsers
            raise FieldError(path, Text("field.must_https_address_http_only"))
        return value


@dataclass(frozen=True)
class PeerAddress:
    """A libp2p multiaddress: /ip4|ip6|dns|dns4|dns6/HOST/tcp|udp/PORT[/…]/p2p/ID."""

    def read(self, value: Any, path: str) -> str:
        if isinstance(value, str) and len(value) <= 300 and is_peer_address(value):  # noqa: PLR2004 - generous
            return value
        raise FieldError(path, Text("field.must_address_such_ip4_203"))


@dataclass(frozen=True)
class Object:
    """An object with exactly these fields, which are passed to `make` by name."""

    make: Callable[..., Any]
    fields: Mapping[str, Field]

    def read(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise FieldError(path or Text("field.manifest"), Text("field.must_object"))
        inside = f"{path}." if path else ""
        for name in value:
            if name not in self.fields:
                raise FieldError(f"{inside}{shown(name)}", Text("field.not_known_field"))
        for name in self.fields:
            if name not in value:
                raise FieldError(f"{inside}{name}", Text("field.missing"))
        # an invalid field is reported in preference to one that only a later version supports
        late: list[Later] = []
        read: dict[str, Any] = {}
        for name, given in value.items():
            try:
                read[name] = self.fields[name].read(given, f"{inside}{name}")
            except Later as error:
                late.append(error)
        if late:
            raise late[0]
        return self.make(**read)


def declared(kind: Callable[..., Any], tag: str = "", **given: Field) -> Object:
    """The Object for a dataclass: each field is `given`, annotated with its kind, or derived from its type.

    Derived are flags, choices (Literal), and nested dataclasses, which may be None. `tag` is the field of a Variant.
    """
    hints = {name: hint for name, hint in _hints(kind).items() if name != tag}
    return Object(kind, {name: given.get(name) or _plain(hint) for name, hint in hints.items()})


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _plain(hint: Any) -> Field:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        field: Field = hint.__metadata__[0]
        return field
    if origin is Literal:
        return Choice(arguments)
    if origin is UnionType:
        return Nullable(declared(arguments[0]))
    return Flag() if hint is bool else declared(hint)


@dataclass(frozen=True)
class Variant:
    """An object whose field `tag` names its kind; each kind has its own fields, and other fields are refused."""

    tag: str
    kinds: Mapping[str, Object]

    def read(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise FieldError(path, Text("field.must_object"))
        if self.tag not in value:
            raise FieldError(f"{path}.{self.tag}", Text("field.missing"))
        kind: str = Choice(tuple(self.kinds)).read(value[self.tag], f"{path}.{self.tag}")
        own = self.kinds[kind]
        elsewhere = {name for other in self.kinds.values() for name in other.fields} - own.fields.keys()
        for name in value:
            if name in elsewhere:
                raise FieldError(f"{path}.{name}", Text("field.does_not_belong", kind=kind))
        rest = {name: given for name, given in value.items() if name != self.tag}
        return Object(functools.partial(own.make, **{self.tag: kind}), own.fields).read(rest, path)


def variant(tag: str, kinds: Mapping[str, Callable[..., Any]]) -> Variant:
    """The Variant for these dataclasses, each of which has a field for the tag."""
    return Variant(tag, {name: declared(kind, tag) for name, kind in kinds.items()})


HASH: Final = Pattern("[0-9a-f]{64}", Text("field.sha_256_64_lower_case"))
SIGNATURE: Final = Pattern("[A-Za-z0-9+/]{86}==", Text("signing.64_bytes_base64"))
"""An Ed25519 signature in base64."""
PROJECT_ID: Final = Pattern("[a-z0-9-]{3,40}", Text("manifest.3_40_lower_case_letters"))
