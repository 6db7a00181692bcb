"""Whether the seed of a project for invited peers may take part in it itself. It must not make invitations."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from skep.adapters.storage import invitations
from skep.core.errors import BadInput
from skep.core.project import invitation
from skep.core.project.manifest import Manifest
from skep.core.text import Text


def check_invited(manifest: Manifest, file: Path | None, peer_id: str) -> None:
    """Raise SkepError unless `file` invites this peer, or the project is open and there is none."""
    if manifest.membership == "open":
        if file is not None:
            raise BadInput(
                Text("invitation.open_everybody_so_seed_needs", title=manifest.title),
                Text("invitation.leave_invitation_out"),
            )
        return
    if file is None:
        raise BadInput(
            Text("invitation.invited_peers_seed_one_them", title=manifest.title),
            Text("invitation.make_invitation_skep_project_invite", peer_id=peer_id),
        )
    found = invitation.read(invitations.read_file(file), invitations.verify)
    invitation.check(found, manifest, peer_id, datetime.now(UTC))
