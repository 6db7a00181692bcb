"""Signed checkpoints: a publisher's note of the checkpoint with which a newcomer of a run begins. Pure.

It is a JSON file beside the project's shard index; the checkpoint lies beside it too, named by its hash. Of two notes the
one that was issued later holds, and an earlier one is refused. Signatures cover `PREFIX` and the fields in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from skep.core.errors import CheckpointError
from skep.core.project.addresses import beside
from skep.core.project.data import FileRef
from skep.core.project.fields import (
    HASH,
    PROJECT_ID,
    SIGNATURE,
    Moment,
    PlainText,
    PublicKey,
    Whole,
    declared,
    key_text,
)
from skep.core.project.manifest import Manifest, fingerprint
from skep.core.project.shards import shard_address
from skep.core.project.signed_document import SignedDocument, Verify, fields_of, moment
from skep.core.strict_json import read_object
from skep.core.text import Text

LIMIT: Final = 4096
"""Maximum size of the note in bytes."""
PREFIX: Final = b"skep checkpoint v1\n"
FILE_FORMAT: Final = "skep checkpoint 1"
"""What a checkpoint file has as its format, in its metadata."""
MOST_BYTES: Final = 2**44
MOST_EPOCH: Final = 10_000_000
FILE: Final = "checkpoint"
"""The name of the checkpoint among the project's files."""

_TELL: Final = Text("web.tell_project_publisher")


@dataclass(frozen=True)
class CheckpointFile:
    """What is known of a checkpoint file: its run and epoch by its own metadata, its hash and its size."""

    run_id: str
    epoch: int
    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class SignedCheckpoint(SignedDocument):
    """The note of one project's checkpoint; times are aware, in whole seconds of UTC."""

    project: Annotated[str, PROJECT_ID]
    publisher: Annotated[bytes, PublicKey()]
    """Raw Ed25519 public key of the signer, 32 bytes."""
    run_id: Annotated[str, PlainText(60)]
    epoch: Annotated[int, Whole(0, MOST_EPOCH)]
    sha256: Annotated[str, HASH]
    size: Annotated[int, Whole(1, MOST_BYTES)]
    """Bytes of the checkpoint."""
    issued: Annotated[datetime, Moment()]
    signature: Annotated[bytes, SIGNATURE] = b""

    prefix = PREFIX

    def _body(self) -> dict[str, Any]:
        return {
            "format": 1,
            "project": self.project,
            "publisher": key_text(self.publisher),
            "run_id": self.run_id,
            "epoch": self.epoch,
            "sha256": self.sha256,
            "size": self.size,
            "issued": moment(self.issued),
        }


def file_name(project_id: str) -> str:
    """The name of the note's file."""
    return f"{project_id}.checkpoint.json"


def address(manifest: Manifest) -> str:
    """The web address at which newcomers look for the note."""
    return beside(manifest.data.index, file_name(manifest.id))


def file_of(found: SignedCheckpoint, manifest: Manifest) -> FileRef:
    """The checkpoint that the note names, as a file to fetch."""
    return FileRef(FILE, found.sha256, found.size, shard_address(manifest.data.index, found.sha256))


def draft(
    manifest: Manifest, earlier: SignedCheckpoint | None, file: CheckpointFile, now: datetime
) -> SignedCheckpoint:
    """A note of `file`, not signed yet. `now` is aware.

    It counts as later than the `earlier` one even if this computer's clock was set back. Raises CheckpointError.
    """
    if file.run_id != manifest.run_id:
        raise CheckpointError(
            Text(
                "signed_checkpoint.file_of_another_run",
                run_id=file.run_id,
                title=manifest.title,
                expected=manifest.run_id,
            ),
            Text("signed_checkpoint.give_one_of_this_run"),
        )
    issued = now.astimezone(UTC).replace(microsecond=0)
    if earlier is not None:
        issued = max(issued, earlier.issued + timedelta(seconds=1))
    return SignedCheckpoint(
        manifest.id, manifest.publisher.key, file.run_id, file.epoch, file.sha256, file.size, issued
    )


def read(raw: bytes, verify: Verify) -> SignedCheckpoint:
    """The note in `raw`, its signature checked by `verify`. Raises CheckpointError."""
    body = read_object(raw, LIMIT, _invalid)
    found = SignedCheckpoint(**fields_of(body, declared(SignedCheckpoint).fields, _invalid))
    if not verify(found.publisher, found.signature, found.signed_bytes):
        raise CheckpointError(Text("signed_checkpoint.was_changed"), _TELL)
    return found


def _invalid(phrase: Text) -> CheckpointError:
    return CheckpointError(Text("signed_checkpoint.not_valid", phrase=phrase), _TELL)


def check(found: SignedCheckpoint, manifest: Manifest) -> None:
    """Raise CheckpointError unless the note is that of this project, its publisher and this run."""
    check_signer(found, manifest)
    if found.run_id != manifest.run_id:
        raise CheckpointError(
            Text(
                "signed_checkpoint.of_another_run",
                run_id=found.run_id,
                title=manifest.title,
                expected=manifest.run_id,
            ),
            _TELL,
        )


def check_signer(found: SignedCheckpoint, manifest: Manifest) -> None:
    """Raise CheckpointError unless the note is that of this project and its publisher, of whatever run."""
    if found.project != manifest.id:
        raise CheckpointError(Text("signed_checkpoint.of_another_project", project=found.project), _TELL)
    if found.publisher != manifest.publisher.key:
        raise CheckpointError(
            Text(
                "signed_checkpoint.signed_with_another_key",
                fingerprint=fingerprint(found.publisher),
                title=manifest.title,
                fingerprint_2=manifest.fingerprint,
            ),
            _TELL,
        )


def later(known: SignedCheckpoint | None, found: SignedCheckpoint) -> SignedCheckpoint:
    """`found`, and raises CheckpointError when it is older than `known`, or another of its time."""
    if known is None or found == known or found.issued > known.issued:
        return found
    raise CheckpointError(
        Text("signed_checkpoint.older_than_known", issued=f"{found.issued:%Y-%m-%d}", known=f"{known.issued:%Y-%m-%d}"),
        _TELL,
    )


def missing(manifest: Manifest) -> CheckpointError:
    """For a project that demands a signed checkpoint, and has none."""
    return CheckpointError(
        Text("signed_checkpoint.none_published", title=manifest.title, address=address(manifest)),
        Text("signed_checkpoint.publisher_signs_first_one"),
    )
