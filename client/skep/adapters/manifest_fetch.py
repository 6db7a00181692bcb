"""Manifests from a path or a web address, with the signature that lies beside them, verified.

It must not keep anything or decide whom to trust; the catalogue does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from skep.adapters import signing
from skep.adapters.web import Patience, Stop, TryAgain, Web
from skep.core.errors import DataError, ManifestError
from skep.core.manifest import Manifest
from skep.core.manifest_fields import FieldError, WebAddress
from skep.core.manifest_types import MANIFEST_BYTES_LIMIT

QUICK: Final = Patience(connect_seconds=10, read_seconds=10, attempts=2)

Fetch = Callable[[str, str, int], bytes]
"""The bytes at a web address, never more than the limit + 1; the second argument names them in sentences.

Raises ManifestError.
"""


@dataclass(frozen=True)
class Verified:
    """A manifest as its publisher wrote it, and what it says."""

    raw: bytes
    signature: bytes
    manifest: Manifest


def fetch_over_web(address: str, what: str, limit: int, *, proxy: str = "") -> bytes:
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
        raise ManifestError(error.title, "Check the address and the internet connection, then try again.") from None
    except DataError as error:
        raise ManifestError(error.title, error.hint) from None


def verified(source: str, fetch: Fetch) -> Verified:
    """What lies at a path or web address, its signature checked. Raises ManifestError."""
    if "://" not in source:
        return Verified(*signing.load_verified(signing.given_path(source)))
    try:
        WebAddress().read(source, f"The address {source}")
    except FieldError as error:
        raise ManifestError(f"{error}.", "Check the address.") from None
    raw = _whole(fetch, source, "the manifest", MANIFEST_BYTES_LIMIT)
    beside = _signature_address(source)
    signature = _whole(fetch, beside, "the manifest's signature", signing.SIGNATURE_FILE_LIMIT)
    return Verified(raw, signature, signing.check(raw, signature))


def _whole(fetch: Fetch, address: str, what: str, limit: int) -> bytes:
    raw = fetch(address, what, limit)
    if len(raw) > limit:
        raise ManifestError(
            f"What lies at {address} is larger than {limit // 1024} KiB, so it is not {what}.", "Check the address."
        )
    return raw


def _signature_address(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path + signing.SIGNATURE_SUFFIX, fragment=""))
