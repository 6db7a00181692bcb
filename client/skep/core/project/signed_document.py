"""What the documents that a publisher signs have in common: the text of their file, and the bytes that are signed. Pure."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from skep.core.errors import SkepError
from skep.core.project.fields import Field, FieldError, Object, Whole
from skep.core.text import Text

Verify = Callable[[bytes, bytes, bytes], bool]
"""Checks (raw Ed25519 public key, signature, message); returns whether the signature is valid."""


class SignedDocument(ABC):
    """A JSON file whose signature covers `prefix` and its other fields in a fixed order."""

    @property
    @abstractmethod
    def signature(self) -> bytes:
        """Of the publisher; empty before it is signed."""

    @property
    @abstractmethod
    def prefix(self) -> bytes:
        """Precedes the signed bytes, so that a signature of other data is never valid for this kind of document."""

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that the signature covers."""
        return self.prefix + json.dumps(self._body(), sort_keys=True, separators=(",", ":")).encode()

    @property
    def text(self) -> str:
        """The file's content."""
        signature = base64.b64encode(self.signature).decode()
        return json.dumps(self._body() | {"signature": signature}, indent=1) + "\n"

    @abstractmethod
    def _body(self) -> dict[str, Any]:
        """The file's fields without the signature."""


def moment(at: datetime) -> str:
    """An aware time of UTC in whole seconds, as files have it."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def fields_of(
    body: Mapping[str, Any], kinds: Mapping[str, Field], refuse: Callable[[Text], SkepError]
) -> dict[str, Any]:
    """The fields of a file of format 1, checked by `kinds`; raises what `refuse` makes of the first wrong one."""
    try:
        fields: dict[str, Any] = Object(dict, {"format": Whole(1, 1), **kinds}).read(dict(body), "")
    except FieldError as error:
        raise refuse(error.text) from None
    del fields["format"]
    return fields | {"signature": base64.b64decode(fields["signature"])}
