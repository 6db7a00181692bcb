"""Join links: a manifest's web address and who must have signed it, in one line that can be sent or shown as a QR code.

    skep://join?manifest=https://example.org/tiny.json&publisher=4f2a90c1d3e5b768

Pure; nothing is fetched here. A link is data from strangers, so whatever is not exactly of this form is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from skep.core.addresses import is_web_address
from skep.core.errors import BadInput
from skep.core.manifest_fields import FieldError, PublicKey
from skep.core.manifest_types import fingerprint

SCHEME: Final = "skep"
ACTION: Final = "join"
LENGTH_LIMIT: Final = 2048
"""Characters; a longer link fits no QR code."""
EXAMPLE: Final = "skep://join?manifest=https://example.org/project.json&publisher=4f2a90c1d3e5b768"

_FIELDS: Final = ("manifest", "publisher")
_FINGERPRINT: Final = re.compile("[0-9a-f]{16}")
_HINT: Final = f"Ask whoever gave you the link for it again; one looks like {EXAMPLE}."


@dataclass(frozen=True)
class JoinLink:
    """`manifest` is a web address, `publisher` a key's fingerprint (16 hex digits) or a whole key (`ed25519:…`)."""

    manifest: str
    publisher: str

    def names(self, key: bytes) -> bool:
        """Whether `key` (32 raw bytes) is the publisher's this link speaks of."""
        if _FINGERPRINT.fullmatch(self.publisher):
            return _digits(key) == self.publisher
        return bool(PublicKey().read(self.publisher, "publisher") == key)


def is_link(text: str) -> bool:
    """Whether `text` is meant as a link of ours, well formed or not."""
    return text[: len(SCHEME) + 1].lower() == f"{SCHEME}:"


def shown(asked: object) -> str:
    """What another skep asks to be looked at, a link or a path; "" for anything that is neither."""
    return asked if isinstance(asked, str) and len(asked) <= LENGTH_LIMIT else ""


def link_to(manifest: str, key: bytes) -> str:
    """The link to the manifest at a web address, signed by `key` (32 raw bytes)."""
    return f"{SCHEME}://{ACTION}?manifest={quote(manifest, safe=':/')}&publisher={_digits(key)}"


def parse(text: str) -> JoinLink:
    """The link in `text`. Raises BadInput."""
    if len(text) > LENGTH_LIMIT:
        raise _refused(f"is longer than {LENGTH_LIMIT} characters")
    fields = _fields(text)
    if not is_web_address(fields["manifest"]):
        raise _refused("names no manifest on the web, which would begin with https://")
    if not _is_publisher(fields["publisher"]):
        raise _refused("names no publisher, which would be 16 hex digits or a key that begins with ed25519:")
    return JoinLink(fields["manifest"], fields["publisher"])


def _fields(text: str) -> dict[str, str]:
    try:
        parts = urlsplit(text)
        # at most one more field than there may be: a hostile link must not cost more than a glance
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=len(_FIELDS) + 1
        )
    except ValueError:
        raise _refused("is not a join link") from None
    if (parts.scheme, parts.netloc, parts.path, parts.fragment) != (SCHEME, ACTION, "", ""):
        raise _refused("is not a join link")
    for name in _FIELDS:
        if [key for key, _ in pairs].count(name) != 1:
            raise _refused(f"must name its {name} once")
    if len(pairs) > len(_FIELDS):
        raise _refused("has more than a manifest and a publisher")
    return dict(pairs)


def _is_publisher(text: str) -> bool:
    if _FINGERPRINT.fullmatch(text):
        return True
    try:
        PublicKey().read(text, "publisher")
    except FieldError:
        return False
    return True


def _digits(key: bytes) -> str:
    return fingerprint(key).replace(" ", "")


def _refused(phrase: str) -> BadInput:
    return BadInput(f"The link {phrase}.", _HINT)
