"""Invitations and revocations on this computer: signed with a publisher's key, read from and written to files; invitations
are stored among the home's secrets.

Their content and validity are defined in `core.project.invitation` and `core.project.revocation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep.adapters.storage.files import atomic_write, os_errors, unreadable
from skep.adapters.storage.secrets import HomeSecrets
from skep.core.errors import InvitationError
from skep.core.project import invitation, revocation
from skep.core.project.data import Project
from skep.core.project.invitation import Invitation
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.project.revocation import Revocations
from skep.core.text import Text
from skep.signatures import is_valid

Signed = TypeVar("Signed", Invitation, Revocations)


def sign(draft: Signed, private: Ed25519PrivateKey) -> Signed:
    """Raises InvitationError when this is not the key of the project's publisher."""
    if private.public_key().public_bytes_raw() != draft.publisher:
        raise InvitationError(
            Text("invitations.key_not_project_publisher_so"),
            Text("invitations.name_key_signs_manifest_key"),
        )
    return replace(draft, signature=private.sign(draft.signed_bytes))


def write(made: Invitation | Revocations, path: Path) -> None:
    """Raises StorageError."""
    with os_errors(
        Text("invitations.invitation_cannot_written", path=str(path)), Text("signing.choose_another_place_out")
    ):
        atomic_write(path, made.text.encode(), mode=0o644)


def read_file(path: Path, limit: int = invitation.LIMIT) -> bytes:
    """The content, at most one byte more than `limit`. Raises InvitationError."""
    with unreadable(path, Text("signing.check_path"), InvitationError), path.open("rb") as file:
        return file.read(limit + 1)


def read_revocations(path: Path, manifest: Manifest) -> Revocations | None:
    """The project's list in a file, None if there is no file. Raises InvitationError."""
    if not path.exists():
        return None
    found = revocation.read(read_file(path, revocation.LIMIT), is_valid)
    revocation.check(found, manifest)
    return found


class KeptInvitations:
    """Implements ports.Invitations over the home's secrets."""

    def __init__(
        self,
        secrets: HomeSecrets,
        peer_id: Callable[[], str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._secrets, self._peer_id, self._now = secrets, peer_id, now

    def accept(self, raw: bytes, manifest: Manifest, *, in_file: bool) -> Invitation:
        """Check and store it, replacing an earlier one. Raises InvitationError, SecretsError, StorageError."""
        found = invitation.read(raw, is_valid)
        invitation.check(found, manifest, self._peer_id(), self._now())
        self._secrets.put(_secret(manifest.id), found.text, in_file=in_file)
        return found

    def present(self, project: VerifiedProject) -> str:
        """The text of a valid invitation to the project, "" if it needs none. Raises InvitationError, SecretsError."""
        manifest = project.manifest
        if not manifest.by_invitation:
            return ""
        found = self._kept(project)
        if found is None:
            raise invitation.missing(project)
        invitation.check(found, manifest, self._peer_id(), self._now())
        return found.text

    def among(self, projects: Sequence[VerifiedProject]) -> list[tuple[Project, Invitation]]:
        """Stored invitations to these projects, valid or expired. Raises InvitationError, SecretsError."""
        invited = [each for each in projects if each.manifest.by_invitation]
        kept = [(project, self._kept(project)) for project in invited]
        return [(project, found) for project, found in kept if found is not None]

    def drop(self, project: Project) -> None:
        """Raises InvitationError when there is none, SecretsError, StorageError."""
        if self._secrets.get(_secret(project.id)) is None:
            raise InvitationError(
                Text("invitations.there_no_invitation_here", title=project.title),
                Text("invitations.skep_project_invitations_lists_them"),
            )
        self._secrets.delete(_secret(project.id))

    def _kept(self, project: Project) -> Invitation | None:
        text = self._secrets.get(_secret(project.id))
        return None if text is None else invitation.read(text.encode(), is_valid)


def _secret(project_id: str) -> str:
    return f"invitation to {project_id}"
