"""A project, and what its publisher signs: real keys, identities in files of the test."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from manifests import raw
from skep.adapters.storage.identity import FileIdentity
from skep.core.project.invitation import Invitation
from skep.core.project.revocation import Revocations, Revoked
from skep.core.project.signed_checkpoint import SignedCheckpoint
from skep.recipes.registry import parse_manifest


class Project:
    """A manifest, for invited peers unless `membership` says otherwise, and its publisher's key."""

    def __init__(self, membership="invited", **changes):
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes_raw()
        text = "ed25519:" + base64.b64encode(self.public).decode()
        content = raw(membership=membership, publisher__key=text, **changes)
        self.text, self.manifest = content.decode(), parse_manifest(content)

    def invite(self, peer, role="trainer", days=1.0, since=0.0, **changes):
        """The text of an invitation issued `since` days ago and valid for `days` days."""
        issued = (datetime.now(UTC) - timedelta(days=since)).replace(microsecond=0)
        fields = {
            "project": self.manifest.id,
            "publisher": self.public,
            "peer": peer,
            "role": role,
            "issued": issued,
            "expires": issued + timedelta(days=days),
        }
        plain = Invitation(**fields | changes)
        return Invitation(**vars(plain) | {"signature": self.key.sign(plain.signed_bytes)}).text

    def revoke(self, *peers, since=0.0):
        """The text of a list that ends the invitations of these peers, issued `since` days ago."""
        issued = (datetime.now(UTC) - timedelta(days=since)).replace(microsecond=0)
        entries = tuple(Revoked(peer, issued) for peer in peers)
        plain = Revocations(self.manifest.id, self.public, issued, entries)
        return replace(plain, signature=self.key.sign(plain.signed_bytes)).text

    def note(self, file, since=0.0, **changes):
        """The text of a note of the checkpoint `file`, a CheckpointFile, issued `since` days ago."""
        issued = (datetime.now(UTC) - timedelta(days=since)).replace(microsecond=0)
        plain = SignedCheckpoint(self.manifest.id, self.public, file.run_id, file.epoch, file.sha256, file.size, issued)
        plain = replace(plain, **changes)
        return replace(plain, signature=self.key.sign(plain.signed_bytes)).text


def identity(folder, name):
    """A new libp2p identity in a file."""
    made = FileIdentity(folder / f"{name}.id")
    assert made.peer_id
    return made
