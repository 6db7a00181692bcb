"""Whether the seed of a project for invited peers may take part in it itself. It must not make invitations."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from skep.adapters import invitations
from skep.core import invitation
from skep.core.errors import BadInput
from skep.core.manifest import Manifest


def check_invited(manifest: Manifest, file: Path | None, peer_id: str) -> None:
    """Raise SkepError unless `file` invites this peer, or the project is open and there is none."""
    if manifest.membership == "open":
        if file is not None:
            raise BadInput(
                f"{manifest.title} is open to everybody, so its seed needs no invitation.", "Leave --invitation out."
            )
        return
    if file is None:
        raise BadInput(
            f"{manifest.title} is for invited peers, and its seed is one of them.",
            f"Make its invitation with skep project invite --peer {peer_id} --role seed, and give it with --invitation.",
        )
    found = invitation.read(invitations.read_file(file), invitations.verify)
    invitation.check(found, manifest, peer_id, datetime.now(UTC))
