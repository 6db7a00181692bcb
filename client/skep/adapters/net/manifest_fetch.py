"""Manifests from a path, a web address or a `.skep` file with a join link, their signatures verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from urllib3.util import Retry

from skep.adapters.net.web import Patience, Stop, TryAgain, Web
from skep.adapters.storage import signing
from skep.core.errors import BadInput, DataError, ManifestError
from skep.core.project.fields import FieldError, WebAddress
from skep.core.project.links import EXAMPLE, LENGTH_LIMIT, is_link
from skep.core.project.manifest import Manifest
from skep.core.project.types import MANIFEST_BYTES_LIMIT
from skep.core.text import Text

SUFFIX: Final = ".skep"


def resolved(source: str) -> str:
    """The link in the file that `source` names; a path when it names another file; else `source`. Raises BadInput.

    Desktops name files by path or as file: addresses.
    """
    if source.startswith("file:"):
        source = url2pathname(urlsplit(source).path)
    if "://" in source or not source.lower().endswith(SUFFIX):
        return source
    path = Path(source)
    try:
        with path.open("rb") as file:
            raw = file.read(LENGTH_LIMIT + 1)
        text = raw.decode("utf-8").strip()
    except OSError as error:
        raise BadInput(
            Text("corpus.cannot_read", path=str(path), reason=str(error.strerror or error)),
            Text("signing.check_path"),
        ) from None
    except UnicodeDecodeError:
        text = ""
    if len(raw) > LENGTH_LIMIT or not is_link(text):
        raise BadInput(
            Text("manifest.holds_no_join_link", path=str(path)),
            Text("manifest.would_one_line_such", example=EXAMPLE),
        )
    return text


QUICK: Final = Patience(retry=Retry(2, backoff_factor=0.5))

Fetch = Callable[[str, Text, int], bytes]
"""The bytes at a web address, never more than the limit + 1; the second argument names them in sentences.

Raises ManifestError.
"""


@dataclass(frozen=True)
class Verified:
    """A manifest as its publisher wrote it, and what it says."""

    raw: bytes
    signature: bytes
    manifest: Manifest


def fetch_over_web(address: str, what: Text, limit: int, *, proxy: str = "") -> bytes:
    """`proxy` is an address, or "" for the environment's."""
    web = Web(QUICK, Stop(), lambda: proxy)

    def attempt() -> bytes:
        raw = bytearray()
        with web.get(address, what) as answer:
            for chunk in answer.chunks():
                raw += chunk
                if len(raw) > limit:
                    break
        return bytes(raw[: limit + 1])

    try:
        return web.persist(attempt)
    except TryAgain as error:
        raise ManifestError(error.title, Text("manifest.check_address_internet_connection_then")) from None
    except DataError as error:
        raise ManifestError(error.title, error.hint) from None


def verified(source: str, fetch: Fetch) -> Verified:
    """What lies at a path or web address, its signature checked. Raises ManifestError."""
    if "://" not in source:
        return Verified(*signing.load_verified(signing.given_path(source)))
    try:
        WebAddress().read(source, "")
    except FieldError as error:
        raise ManifestError(
            Text("manifest.address", source=source, phrase=error.phrase), Text("manifest.check_address")
        ) from None
    raw = _whole(fetch, source, Text("field.manifest"), MANIFEST_BYTES_LIMIT)
    beside = _signature_address(source)
    signature = _whole(fetch, beside, Text("manifest.manifest_signature"), signing.SIGNATURE_FILE_LIMIT)
    return Verified(raw, signature, signing.check(raw, signature))


def _whole(fetch: Fetch, address: str, what: Text, limit: int) -> bytes:
    raw = fetch(address, what, limit)
    if len(raw) > limit:
        raise ManifestError(
            Text("manifest.what_lies_larger_than_kib", address=address, limit=limit // 1024, what=what),
            Text("manifest.check_address"),
        )
    return raw


def _signature_address(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path + signing.SIGNATURE_SUFFIX, fragment=""))
