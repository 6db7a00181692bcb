"""Invitations: signed statements of a publisher that a peer may take part in a project until a date. Pure.

An invitation is a JSON file that need not be secret: it is useless without the private key of the peer it names.
Signatures cover `PREFIX` and the fields in a fixed order; callers pass the functions that sign and verify.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from skep.core.errors import InvitationError
from skep.core.project.data import Project
from skep.core.project.fields import (
    PROJECT_ID,
    SIGNATURE,
    Choice,
    FieldError,
    Moment,
    Pattern,
    PublicKey,
    declared,
    key_text,
)
from skep.core.project.manifest import Manifest, fingerprint
from skep.core.project.signed_document import SignedDocument, Verify, fields_of, moment
from skep.core.strict_json import read_object
from skep.core.text import Text

LIMIT: Final = 4096
"""Maximum size of an invitation file in bytes; one takes about 500."""
PREFIX: Final = b"skep invitation v1\n"
LEEWAY: Final = timedelta(minutes=5)
"""How far this computer's clock may lag behind the publisher's."""
LONGEST_DAYS: Final = 3650

TRAINER: Final = "trainer"
SEED: Final = "seed"
DONOR: Final = "donor"
HOST: Final = "host"
ROLES: Final = (TRAINER, SEED, DONOR, HOST)
"""What a peer may do. Each takes part in the DHT, and may load the state; AVERAGING and GIVING say more."""
AVERAGING: Final = (TRAINER, HOST)
"""The roles that enter rounds."""
GIVING: Final = (DONOR, HOST)
"""In a moderated project, the roles from which a newcomer takes the state. In others it takes it from all."""

PEER: Final = Pattern("Qm[1-9A-HJ-NP-Za-km-z]{44}", Text("invitation.peer_id_skep_identity_prints"))

_ASK: Final = Text("invitation.ask_project_publisher_new_invitation")


@dataclass(frozen=True)
class Invitation(SignedDocument):
    """The peer that may take part and in which project; `issued` and `expires` are aware, in whole seconds of UTC."""

    project: Annotated[str, PROJECT_ID]
    publisher: Annotated[bytes, PublicKey()]
    """Raw Ed25519 public key of the signer, 32 bytes."""
    peer: Annotated[str, PEER]
    role: Annotated[str, Choice(ROLES)]
    issued: Annotated[datetime, Moment()]
    expires: Annotated[datetime, Moment()]
    signature: Annotated[bytes, SIGNATURE] = b""
    names_role: bool = True
    """Whether the file says the role. One that does not is a trainer's, and its signature covers no role."""

    prefix = PREFIX

    def _body(self) -> dict[str, Any]:
        return {
            "format": 1,
            "project": self.project,
            "publisher": key_text(self.publisher),
            "peer": self.peer,
            **({"role": self.role} if self.names_role else {}),
            "issued": moment(self.issued),
            "expires": moment(self.expires),
        }


def draft(manifest: Manifest, peer: str, role: str, now: datetime, days: int) -> Invitation:
    """An unsigned invitation, valid from `now` (aware) for `days` days. Raises InvitationError."""
    if not manifest.by_invitation:
        raise InvitationError(
            Text("invitation.open_everybody_so_nobody_needs", title=manifest.title),
            Text("invitation.set_membership_invited_manifest_sign"),
        )
    issued = now.astimezone(UTC).replace(microsecond=0)
    try:
        PEER.read(peer, "")
    except FieldError as error:
        raise InvitationError(
            Text("invitation.not_peer_id", peer=peer[:60], reason=error.phrase),
            Text("invitation.volunteer_finds_skep_identity"),
        ) from None
    if not 1 <= days <= LONGEST_DAYS:
        raise InvitationError(
            Text("invitation.invitation_lasts_from_1_days", longest_days=LONGEST_DAYS),
            Text("invitation.give_days_number_those"),
        )
    return Invitation(manifest.id, manifest.publisher.key, peer, role, issued, issued + timedelta(days=days))


def read(raw: bytes, verify: Verify) -> Invitation:
    """The invitation in `raw`, its signature checked by `verify`. Raises InvitationError."""
    body = read_object(raw, LIMIT, _invalid)
    kinds = {name: kind for name, kind in declared(Invitation).fields.items() if name != "names_role"}
    fields = fields_of({"role": TRAINER} | body, kinds, _invalid)
    found = Invitation(**fields, names_role="role" in body)
    if not verify(found.publisher, found.signature, found.signed_bytes):
        raise InvitationError(Text("invitation.invitation_was_changed_after_was"), _ASK)
    return found


def _invalid(phrase: Text) -> InvitationError:
    return InvitationError(Text("invitation.invitation_not_valid", phrase=phrase), _ASK)


def check(found: Invitation, manifest: Manifest, peer: str, now: datetime) -> None:
    """Raise InvitationError unless the invitation lets `peer` take part in the project at `now` (aware)."""
    if found.project != manifest.id:
        raise InvitationError(Text("invitation.invitation_another_project", project=found.project), _ASK)
    if found.publisher != manifest.publisher.key:
        raise InvitationError(
            Text(
                "invitation.invitation_signed_another_key_than",
                fingerprint=fingerprint(found.publisher),
                title=manifest.title,
                fingerprint_2=manifest.fingerprint,
            ),
            _ASK,
        )
    if found.peer != peer:
        raise InvitationError(
            Text("invitation.invitation_another_computer_one", peer=found.peer, peer_2=peer),
            Text("invitation.give_publisher_computer_identity"),
        )
    if found.expires <= now:
        raise InvitationError(
            Text("invitation.invitation_expired", title=manifest.title, expires=f"{found.expires:%Y-%m-%d}"), _ASK
        )
    if found.issued > now + LEEWAY:
        raise InvitationError(
            Text("invitation.invitation_begins_only", title=manifest.title, issued=f"{found.issued:%Y-%m-%d}"),
            Text("invitation.check_computer_clock_wait_until"),
        )


def averages(found: Invitation) -> bool:
    """Whether the invited peer may enter rounds."""
    return found.role in AVERAGING


def gives_state(found: Invitation, manifest: Manifest) -> bool:
    """Whether newcomers may take the state from the invited peer."""
    return manifest.membership != "moderated" or found.role in GIVING


def is_good(found: Invitation, manifest: Manifest, peer: str, now: datetime) -> bool:
    """Whether `check` accepts the invitation; for those of other peers."""
    try:
        check(found, manifest, peer, now)
    except InvitationError:
        return False
    return True


def end_of(text: str) -> datetime:
    """When the invitation in `text` expires; its signature is not verified. Raises InvitationError."""
    return read(text.encode(), lambda *_: True).expires


def over(title: str) -> InvitationError:
    """The error for this computer's invitation expiring while it trains."""
    return InvitationError(Text("invitation.computer_invitation_expired_so_swarm", title=title), _ASK)


def revoked(title: str) -> InvitationError:
    """The error for this computer's invitation being revoked."""
    return InvitationError(Text("invitation.was_revoked", title=title), _ASK)


def missing(project: Project) -> InvitationError:
    """The error for a project that needs an invitation when this computer has none."""
    return InvitationError(
        Text("invitation.invited_computers_one_has_no", title=project.title),
        Text("invitation.send_publisher_what_skep_identity"),
    )
