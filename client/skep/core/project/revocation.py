"""Revocations: a publisher's signed list of peers whose invitations have ended before their date. Pure.

It is a JSON file beside the project's shard index. Each entry voids the invitations of one peer that were issued until a
time, so that a later invitation lets the peer in again. A list is complete: of two, the one that was issued later holds,
and an earlier one is refused. Signatures cover `PREFIX` and the fields in a fixed order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from skep.core.errors import InvitationError
from skep.core.project.addresses import beside
from skep.core.project.fields import (
    PROJECT_ID,
    SIGNATURE,
    FieldError,
    Moment,
    PublicKey,
    Several,
    declared,
    key_text,
)
from skep.core.project.invitation import PEER, Invitation
from skep.core.project.manifest import Manifest, fingerprint
from skep.core.project.signed_document import SignedDocument, Verify, fields_of, moment
from skep.core.strict_json import read_object
from skep.core.text import Text

LIMIT: Final = 512 * 1024
"""Maximum size of the file in bytes; an entry takes about 110."""
MOST: Final = 4000
PREFIX: Final = b"skep revocations v1\n"

_TELL: Final = Text("revocation.tell_publisher")


@dataclass(frozen=True)
class Revoked:
    """Invitations to `peer` that were issued at `until` or before are void."""

    peer: Annotated[str, PEER]
    until: Annotated[datetime, Moment()]


@dataclass(frozen=True)
class Revocations(SignedDocument):
    """The list of one project; times are aware, in whole seconds of UTC."""

    project: Annotated[str, PROJECT_ID]
    publisher: Annotated[bytes, PublicKey()]
    """Raw Ed25519 public key of the signer, 32 bytes."""
    issued: Annotated[datetime, Moment()]
    revoked: Annotated[tuple[Revoked, ...], Several(declared(Revoked), 0, MOST)]
    signature: Annotated[bytes, SIGNATURE] = b""

    prefix = PREFIX

    def _body(self) -> dict[str, Any]:
        return {
            "format": 1,
            "project": self.project,
            "publisher": key_text(self.publisher),
            "issued": moment(self.issued),
            "revoked": [{"peer": each.peer, "until": moment(each.until)} for each in self.revoked],
        }

    @functools.cached_property
    def _ends(self) -> Mapping[str, datetime]:
        return {each.peer: each.until for each in self.revoked}

    def voids(self, found: Invitation) -> bool:
        """Whether the invitation does not count any more."""
        end = self._ends.get(found.peer)
        return end is not None and found.issued <= end


def file_name(manifest: Manifest) -> str:
    return f"{manifest.id}.revoked.json"


def address(manifest: Manifest) -> str:
    """The web address at which the project's members look for the list."""
    return beside(manifest.data.index, file_name(manifest))


def draft(manifest: Manifest, earlier: Revocations | None, peer: str, now: datetime) -> Revocations:
    """The `earlier` list, if there is one, with an entry for `peer`, not signed yet. `now` is aware.

    It counts as later than `earlier` even if this computer's clock was set back. Raises InvitationError.
    """
    if not manifest.by_invitation:
        raise InvitationError(
            Text("revocation.project_is_open", title=manifest.title),
            Text("invitation.set_membership_invited_manifest_sign"),
        )
    try:
        PEER.read(peer, "")
    except FieldError as error:
        raise InvitationError(
            Text("invitation.not_peer_id", peer=peer[:60], reason=error.phrase), Text("revocation.where_peer_id_is")
        ) from None
    issued = now.astimezone(UTC).replace(microsecond=0)
    if earlier is not None:
        check(earlier, manifest)
        issued = max(issued, earlier.issued + timedelta(seconds=1))
    others = tuple(each for each in earlier.revoked if each.peer != peer) if earlier else ()
    if len(others) >= MOST:
        raise InvitationError(Text("revocation.list_is_full", most=MOST), Text("revocation.begin_with_new_key"))
    return Revocations(manifest.id, manifest.publisher.key, issued, (*others, Revoked(peer, issued)))


def read(raw: bytes, verify: Verify) -> Revocations:
    """The list in `raw`, its signature checked by `verify`. Raises InvitationError."""
    found = Revocations(**fields_of(read_object(raw, LIMIT, _invalid), declared(Revocations).fields, _invalid))
    if not verify(found.publisher, found.signature, found.signed_bytes):
        raise InvitationError(Text("revocation.was_changed"), _TELL)
    return found


def _invalid(phrase: Text) -> InvitationError:
    return InvitationError(Text("revocation.not_valid", phrase=phrase), _TELL)


def check(found: Revocations, manifest: Manifest) -> None:
    """Raise InvitationError unless the list is that of this project and its publisher."""
    if found.project != manifest.id:
        raise InvitationError(Text("revocation.of_another_project", project=found.project), _TELL)
    if found.publisher != manifest.publisher.key:
        raise InvitationError(
            Text(
                "revocation.signed_with_another_key",
                fingerprint=fingerprint(found.publisher),
                title=manifest.title,
                fingerprint_2=manifest.fingerprint,
            ),
            _TELL,
        )


def later(known: Revocations | None, found: Revocations) -> Revocations:
    """`found`, and raises InvitationError when it is older than `known`, or another of its time."""
    if known is None or found == known or found.issued > known.issued:
        return found
    raise InvitationError(
        Text("revocation.older_than_known", issued=f"{found.issued:%Y-%m-%d}", known=f"{known.issued:%Y-%m-%d}"), _TELL
    )
