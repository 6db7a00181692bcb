"""This computer's libp2p identity: an RSA key created once, in the file format that hivemind's p2pd reads.

The key is never sent or logged.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from skep.adapters.storage.files import atomic_create, atomic_write, name_aside, os_errors
from skep.core.errors import DamagedFile
from skep.core.project.addresses import peer_id_of, protobuf_key
from skep.core.text import Text
from skep.files import replacing, sync

RSA_BITS: Final = 2048
KEY_LIMIT: Final = 16 * 1024
OWNER_ONLY: Final = 0o600
_MOVE: Final = Text("identity.restore_from_backup_move_file")
_RENEW: Final = Text("identity.restore_from_backup_renew")


class FileIdentity:
    """Implements ports.Identity with a file that only its owner can read, created at first use."""

    def __init__(self, path: Path, note: Path | None = None) -> None:
        """`note` is a file for the peer id. With it, a key that is lost is not replaced silently: projects know this
        computer, and have issued invitations, by that peer id.
        """
        self._path, self._note = path, note

    @property
    def path(self) -> Path:
        """The path of the private key. Raises DamagedFile when it is damaged or missing though it was used before,
        StorageError when it cannot be read or written.
        """
        self._key()  # check it here: p2pd does not report a damaged key
        return self._path

    @property
    def peer_id(self) -> str:
        """base58 libp2p peer id. Raises as `path` does."""
        return _peer_id(self._key())

    def renew(self) -> Path | None:
        """Create a new identity; returns the old key's new path, None if there was no key.

        Raises StorageError; then the old one is still there.
        """
        with self._errors(), replacing(self._path, OWNER_ONLY) as new:
            new.write_bytes(_new_key())
            sync(new)  # nothing is moved before it is certain that the new one has room
            aside = name_aside(self._path) if self._path.exists() else None
            if aside is not None:
                self._path.rename(aside)
        self._key()
        return aside

    def _key(self) -> rsa.RSAPrivateKey:
        with self._errors():
            if not self._path.exists():
                if self._note is not None and self._note.exists():
                    raise DamagedFile(Text("identity.computer_identity_missing", path=str(self._path)), _RENEW)
                self._make()
            raw = _read_private(self._path)
        key = _load(raw, self._path, _RENEW if self._note is not None else _MOVE)
        if self._note is not None:
            self._write(self._note, _peer_id(key).encode())
        return key

    def _make(self) -> None:
        atomic_create(self._path, _new_key(), mode=OWNER_ONLY)

    def _write(self, note: Path, peer_id: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not keep a good key from its use
            if not note.exists() or note.read_bytes() != peer_id:
                atomic_write(note, peer_id, mode=OWNER_ONLY)

    def _errors(self) -> AbstractContextManager[None]:
        return os_errors(
            Text("identity.computer_identity_cannot_read_written", path=str(self._path)),
            Text("secrets.check_folder_permissions_free_disk"),
        )


def _new_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    der = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return protobuf_key(der)


def _peer_id(key: rsa.RSAPrivateKey) -> str:
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return peer_id_of(der)


def _read_private(path: Path) -> bytes:
    with path.open("rb") as file:
        # a copy or a backup may have made it readable by others
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & ~OWNER_ONLY:
            os.fchmod(file.fileno(), OWNER_ONLY)
        return file.read(KEY_LIMIT)


def _load(raw: bytes, path: Path, hint: Text) -> rsa.RSAPrivateKey:
    damaged = DamagedFile(Text("identity.computer_identity_damaged", path=str(path)), hint)
    try:
        key = serialization.load_der_private_key(key_of(raw), password=None)
    except (ValueError, TypeError):
        raise damaged from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise damaged
    return key


def key_of(raw: bytes) -> bytes:
    """The key in DER that a key message holds, as `protobuf_key` writes it. Raises ValueError if `raw` is not one."""
    # the kind, RSA, as the first field; the data, after their length, as the second
    message = re.fullmatch(rb"\x08\x00\x12[\x80-\xff]*[\x00-\x7f](.*)", raw, re.DOTALL)
    if not message or protobuf_key(message[1]) != raw:
        raise ValueError("not an RSA key message, or not all of it")
    return message[1]
