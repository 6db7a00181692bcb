"""Join links: a manifest's web address and its publisher, on one line that can be sent or shown as a QR code.

    skep://join?manifest=https://example.org/tiny.json&publisher=4f2a90c1d3e5b768

Pure; nothing is fetched here. Links are untrusted input, so anything that is not exactly of this form is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from skep.core.errors import BadInput
from skep.core.project.addresses import is_web_address
from skep.core.project.fields import FieldError, PublicKey
from skep.core.project.manifest import fingerprint
from skep.core.text import Text

SCHEME: Final = "skep"
ACTION: Final = "join"
LENGTH_LIMIT: Final = 2048
"""Maximum length in characters; a longer link does not fit into a QR code."""
EXAMPLE: Final = "skep://join?manifest=https://example.org/project.json&publisher=4f2a90c1d3e5b768"

_FIELDS: Final = ("manifest", "publisher")
_FINGERPRINT: Final = re.compile("[0-9a-f]{16}")
_HINT: Final = Text("links.ask_whoever_gave_you_link", example=EXAMPLE)


@dataclass(frozen=True)
class JoinLink:
    """`manifest` is a web address, `publisher` a key's fingerprint (16 hex digits) or a whole key (`ed25519:…`)."""

    manifest: str
    publisher: str

    def names(self, key: bytes) -> bool:
        """Whether `key` (32 raw bytes) is the key of the link's publisher."""
        if _FINGERPRINT.fullmatch(self.publisher):
            return _digits(key) == self.publisher
        return bool(PublicKey().read(self.publisher, "publisher") == key)


def is_link(text: str) -> bool:
    """Whether `text` is intended as a join link, valid or not."""
    return text[: len(SCHEME) + 1].lower() == f"{SCHEME}:"


def shown(asked: object) -> str:
    """The link or path that another skep process asks to show; "" for anything else."""
    return asked if isinstance(asked, str) and len(asked) <= LENGTH_LIMIT else ""


def link_to(manifest: str, key: bytes) -> str:
    """The link to the manifest at a web address, signed by `key` (32 raw bytes)."""
    return f"{SCHEME}://{ACTION}?manifest={quote(manifest, safe=':/')}&publisher={_digits(key)}"


def parse(text: str) -> JoinLink:
    """The link in `text`. Raises BadInput."""
    if len(text) > LENGTH_LIMIT:
        raise _refused(Text("links.longer_than_characters", length_limit=LENGTH_LIMIT))
    fields = _fields(text)
    if not is_web_address(fields["manifest"]):
        raise _refused(Text("links.names_no_manifest_web_would"))
    if not _is_publisher(fields["publisher"]):
        raise _refused(Text("links.names_no_publisher_would_16"))
    return JoinLink(fields["manifest"], fields["publisher"])


def _fields(text: str) -> dict[str, str]:
    try:
        parts = urlsplit(text)
        # at most one more field than is valid, so that parsing a hostile link stays cheap
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=len(_FIELDS) + 1
        )
    except ValueError:
        raise _refused(Text("links.not_join_link")) from None
    if (parts.scheme, parts.netloc, parts.path, parts.fragment) != (SCHEME, ACTION, "", ""):
        raise _refused(Text("links.not_join_link"))
    for name in _FIELDS:
        if [key for key, _ in pairs].count(name) != 1:
            raise _refused(Text("links.must_name_once", name=name))
    if len(pairs) > len(_FIELDS):
        raise _refused(Text("links.has_more_than_manifest_publisher"))
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


def _refused(phrase: Text) -> BadInput:
    return BadInput(Text("links.link", phrase=phrase), _HINT)
