"""Signed checkpoints on this computer: the file that a publisher signs, and the note of it, read and written.

Their content and validity are defined in `core.project.signed_checkpoint`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep.adapters.storage.files import atomic_write, os_errors, unreadable
from skep.core.errors import CheckpointError, StorageError
from skep.core.project import signed_checkpoint
from skep.core.project.manifest import Manifest
from skep.core.project.shards import shard_name
from skep.core.project.signed_checkpoint import FILE_FORMAT, LIMIT, MOST_EPOCH, CheckpointFile, SignedCheckpoint
from skep.core.strict_json import read_object
from skep.core.text import Text
from skep.files import replacing
from skep.signatures import is_valid

HEADER_LIMIT: Final = 100_000_000
"""Bytes of the header of a safetensors file, as in the library."""
_READABLE: Final = 0o644
_EPOCH: Final = re.compile(r"\d{1,8}", re.ASCII)


def sign(draft: SignedCheckpoint, private: Ed25519PrivateKey) -> SignedCheckpoint:
    """Raises CheckpointError when this is not the key of the project's publisher."""
    if private.public_key().public_bytes_raw() != draft.publisher:
        raise CheckpointError(
            Text("signed_checkpoint.key_not_publishers"), Text("invitations.name_key_signs_manifest_key")
        )
    return replace(draft, signature=private.sign(draft.signed_bytes))


def read_note(path: Path, manifest: Manifest) -> SignedCheckpoint | None:
    """The project's note in a file, of whatever run; None if there is no file. Raises CheckpointError."""
    with unreadable(path, Text("signing.check_path"), CheckpointError):
        try:
            with path.open("rb") as file:
                raw = file.read(LIMIT + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
    found = signed_checkpoint.read(raw, is_valid)
    signed_checkpoint.check_signer(found, manifest)
    return found


def write_note(made: SignedCheckpoint, path: Path) -> None:
    """Raises OSError."""
    atomic_write(path, made.text.encode(), mode=_READABLE)


def describe(path: Path) -> CheckpointFile:
    """The checkpoint in a file, by its metadata alone: no tensor is read. Raises StorageError."""
    with unreadable(path, Text("signing.check_path"), StorageError), path.open("rb") as file:
        metadata = _metadata(path, file)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    run_id, epoch = metadata.get("run_id"), metadata.get("epoch")
    told = isinstance(run_id, str) and isinstance(epoch, str) and _EPOCH.fullmatch(epoch)
    if metadata.get("format") != FILE_FORMAT or not told or int(str(epoch)) > MOST_EPOCH:
        raise _no_checkpoint(path)
    return CheckpointFile(str(run_id), int(str(epoch)), sha256, size)


def _metadata(path: Path, file: BinaryIO) -> dict[str, Any]:
    length = int.from_bytes(file.read(8), "little")
    raw = file.read(min(length, HEADER_LIMIT + 1))
    metadata = read_object(raw, HEADER_LIMIT, lambda _: _no_checkpoint(path)).get("__metadata__")
    return metadata if isinstance(metadata, dict) else {}


def _no_checkpoint(path: Path) -> StorageError:
    return StorageError(Text("checkpoints.not_checkpoint_skep", path=str(path)), Text("signing.check_path"))


def publish(made: SignedCheckpoint, checkpoint: Path, folder: Path) -> tuple[Path, Path]:
    """Write the checkpoint, and then the note, into the folder; their paths there. Raises StorageError."""
    note, copied = folder / signed_checkpoint.file_name(made.project), folder / shard_name(made.sha256)
    with os_errors(
        Text("signed_checkpoint.cannot_be_written", folder=str(folder)), Text("signed_checkpoint.choose_another_folder")
    ):
        folder.mkdir(parents=True, exist_ok=True)
        if not (copied.exists() and copied.samefile(checkpoint)):
            with replacing(copied, _READABLE) as fresh:
                shutil.copyfile(checkpoint, fresh)
        write_note(made, note)
    return note, copied
