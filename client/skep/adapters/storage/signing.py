"""Ed25519 keys and signatures of manifests: key files, the detached signature file, and its verification.

The signature is checked before the manifest is parsed. The catalogue pins the trusted keys.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep.adapters.storage.files import atomic_create, atomic_write, os_errors, unreadable
from skep.adapters.storage.paths import expanded
from skep.core.errors import BadInput, ManifestError, SkepError
from skep.core.project.fields import KEY_BYTES, SIGNATURE, Field, FieldError, Object, PublicKey, Whole, key_text
from skep.core.project.manifest import MANIFEST_BYTES_LIMIT, Manifest, fingerprint
from skep.core.strict_json import read_object
from skep.core.text import Text, verbatim
from skep.recipes.registry import parse_manifest
from skep.signatures import is_valid

PREFIX: Final = b"skep manifest v1\n"
"""Prefix of the signed bytes, so that a signature of other data is not valid for a manifest."""
SIGNATURE_FILE_LIMIT: Final = 4096
KEY_FILE_LIMIT: Final = 1024
SIGNATURE_SUFFIX: Final = ".sig"
PUBLIC_SUFFIX: Final = ".pub"

_SIGNATURE_FIELDS: Final[dict[str, Field]] = {
    "format": Whole(1, 1),
    "key": PublicKey(),
    "signature": SIGNATURE,
}


def make_key(path: Path) -> bytes:
    """Create a publisher's key: private at `path` (0600), public beside it. Returns the public key.

    Raises BadInput if there is a key already: an overwritten key could never sign for its projects again.
    """
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    content = base64.b64encode(private.private_bytes_raw()) + b"\n"
    with os_errors(Text("signing.key_cannot_written", path=str(path)), Text("signing.choose_another_place_out")):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_create(path, content, mode=0o600)
        if path.read_bytes() != content:
            raise BadInput(
                Text("signing.there_key_already", path=str(path)), Text("signing.keep_choose_another_place_out")
            )
        atomic_write(path.with_name(path.name + PUBLIC_SUFFIX), public_text(public), mode=0o644)
    return public


def ensure_key(path: Path) -> bytes:
    """The public key of the key file at `path`, created if it is missing."""
    there = os.path.exists(path)  # noqa: PTH110 - says no where Path.exists raises
    return load_private(path).public_key().public_bytes_raw() if there else make_key(path)


def public_text(public: bytes) -> bytes:
    """Content of the public key file beside a private key."""
    return f"{key_text(public)}\nfingerprint {fingerprint(public)}\n".encode()


def given_path(text: str) -> Path:
    """As `expanded`, also for a text with a null character, which no path has. Raises BadInput."""
    return expanded(text.replace("\0", "?"))


def signature_path(manifest: Path) -> Path:
    return manifest.with_name(manifest.name + SIGNATURE_SUFFIX)


def sign_manifest(path: Path, key: Path) -> Path:
    """As `sign_with`, with the key in a file."""
    return sign_with(path, load_private(key), verbatim(str(key)))


def publisher_of(path: Path) -> bytes:
    """The public key that the manifest at `path` names, without checking the signature. Raises ManifestError."""
    return parse_manifest(read_capped(path, MANIFEST_BYTES_LIMIT)).publisher.key


def sign_with(path: Path, private: Ed25519PrivateKey, named: Text) -> Path:
    """Sign the manifest at `path`, which must be valid and name this key; returns the signature file.

    `named` is the name of the key in messages. Raises BadInput.
    """
    public = private.public_key().public_bytes_raw()
    raw = read_capped(path, MANIFEST_BYTES_LIMIT)
    if parse_manifest(raw).publisher.key != public:
        raise ManifestError(
            Text("signing.manifest_names_another_publisher_key", path=str(path), named=named),
            Text("signing.set_publisher_key", key=key_text(public)),
        )
    signature = base64.b64encode(private.sign(PREFIX + raw)).decode()
    body = f'{{"format": 1, "key": "{key_text(public)}", "signature": "{signature}"}}\n'
    with os_errors(Text("signing.signature_cannot_written_beside", path=str(path)), Text("signing.check_folder")):
        atomic_write(signature_path(path), body.encode(), mode=0o644)
    return signature_path(path)


def verify(raw: bytes, signature_file: bytes) -> bytes:
    """The public key that signed `raw`. Raises ManifestError."""
    body = read_object(signature_file, SIGNATURE_FILE_LIMIT, _bad_signature_file)
    try:
        read = Object(dict, _SIGNATURE_FIELDS).read(body, "")
    except FieldError as error:
        raise _bad_signature_file(error.text) from None
    key: bytes = read["key"]
    if not is_valid(key, base64.b64decode(read["signature"]), PREFIX + raw):
        raise ManifestError(Text("signing.manifest_signature_does_not_fit"), Text("signing.get_both_files_again_from"))
    return key


def check(raw: bytes, signature_file: bytes) -> Manifest:
    """The manifest in `raw`, after verifying that it is signed by the publisher it names. Raises ManifestError."""
    key = verify(raw, signature_file)
    manifest = parse_manifest(raw)
    if manifest.publisher.key != key:
        raise ManifestError(
            Text("signing.manifest_signed_another_key_than"),
            Text("signing.get_both_files_again_from"),
        )
    return manifest


def load_verified(path: Path) -> tuple[bytes, bytes, Manifest]:
    """Raw manifest, raw signature file and parsed manifest at `path`. Raises ManifestError."""
    raw = read_capped(path, MANIFEST_BYTES_LIMIT)
    signature = signature_path(path)
    if not os.path.exists(signature):  # noqa: PTH110 - says no where Path.exists raises
        raise ManifestError(
            Text("signing.manifest_not_signed_there_no", path=str(path), name=signature.name),
            Text("signing.get_both_files_from_project"),
        )
    signature_file = read_capped(signature, SIGNATURE_FILE_LIMIT)
    return raw, signature_file, check(raw, signature_file)


def read_capped(path: Path, limit: int) -> bytes:
    """The file's bytes; never more than `limit` + 1 are read. Raises ManifestError."""
    with unreadable(path, Text("signing.check_path"), ManifestError):
        try:
            with path.open("rb") as file:
                raw = file.read(limit + 1)
        except FileNotFoundError:
            raise ManifestError(Text("signing.there_no_manifest", path=str(path)), Text("signing.check_path")) from None
    if len(raw) > limit:
        raise ManifestError(
            Text("signing.larger_than_kib_no_manifest", path=str(path), limit=limit // 1024), Text("signing.check_path")
        )
    return raw


def _bad_signature_file(phrase: Text) -> SkepError:
    return ManifestError(
        Text("signing.manifest_signature_file_not_valid", phrase=phrase), Text("signing.get_both_files_again_from")
    )


def load_private(path: Path) -> Ed25519PrivateKey:
    """The private key in a key file. Raises BadInput."""
    with os_errors(Text("signing.key_cannot_read", path=str(path)), Text("signing.check_permissions"), BadInput):
        try:
            with path.open("rb") as file:
                raw = base64.b64decode(file.read(KEY_FILE_LIMIT).strip(), validate=True)
        except FileNotFoundError:
            raise BadInput(Text("signing.there_no_key", path=str(path)), Text("key.skep_key_new_makes_one")) from None
        except ValueError:
            raw = b""
    if len(raw) != KEY_BYTES:
        raise BadInput(Text("signing.not_key_made_skep_key", path=str(path)), Text("signing.check_path"))
    return Ed25519PrivateKey.from_private_bytes(raw)
