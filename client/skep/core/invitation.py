"""Invitations: a publisher's signed word that one peer may take part in one project until a date. Pure.

An invitation is a JSON file that needs no secrecy: it is worth nothing without the private key of the peer it names.
Signatures are made and checked by what callers hand in, over `PREFIX` and the fields in a fixed order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from skep.core.errors import InvitationError
from skep.core.manifest_fields import (
    KEY_PREFIX,
    Choice,
    Field,
    FieldError,
    Moment,
    Object,
    Pattern,
    PublicKey,
    Whole,
)
from skep.core.manifest_types import Manifest, fingerprint
from skep.core.model import Project
from skep.core.strict_json import read_object

LIMIT: Final = 4096
"""Bytes of an invitation's file; one takes about 500."""
PREFIX: Final = b"skep invitation v1\n"
"""Goes before the signed bytes, so that a signature of something else can never pass for an invitation's."""
LEEWAY: Final = timedelta(minutes=5)
"""How far this computer's clock may lag behind the publisher's."""
LONGEST_DAYS: Final = 3650

TRAINER: Final = "trainer"
SEED: Final = "seed"
ROLES: Final = (TRAINER, SEED)
"""A trainer averages; a seed keeps the swarm findable and may load its state, and never averages."""

PEER: Final = Pattern("Qm[1-9A-HJ-NP-Za-km-z]{44}", "a peer id as skep identity prints it (Qm…)")

Verify = Callable[[bytes, bytes, bytes], bool]
"""Whether (raw Ed25519 public key, signature, message) belong together."""

_FIELDS: Final[dict[str, Field]] = {
    "format": Whole(1, 1),
    "project": Pattern("[a-z0-9-]{3,40}", "a project's id"),
    "publisher": PublicKey(),
    "peer": PEER,
    "role": Choice(ROLES),
    "issued": Moment(),
    "expires": Moment(),
    "signature": Pattern("[A-Za-z0-9+/]{86}==", "64 bytes in base64"),
}
_ASK: Final = "Ask the project's publisher for a new invitation."


@dataclass(frozen=True)
class Invitation:
    """Who may take part in what; `issued` and `expires` are aware, in whole seconds of UTC."""

    project: str
    publisher: bytes
    """Raw Ed25519 public key of whoever signed it, 32 bytes."""
    peer: str
    role: str
    issued: datetime
    expires: datetime
    signature: bytes = b""

    @property
    def signed_bytes(self) -> bytes:
        """What the signature is over."""
        return PREFIX + json.dumps(self._body(), sort_keys=True, separators=(",", ":")).encode()

    @property
    def text(self) -> str:
        """The file's content."""
        signature = base64.b64encode(self.signature).decode()
        return json.dumps(self._body() | {"signature": signature}, indent=1) + "\n"

    def _body(self) -> dict[str, Any]:
        return {
            "format": 1,
            "project": self.project,
            "publisher": KEY_PREFIX + base64.b64encode(self.publisher).decode(),
            "peer": self.peer,
            "role": self.role,
            "issued": f"{self.issued:%Y-%m-%dT%H:%M:%SZ}",
            "expires": f"{self.expires:%Y-%m-%dT%H:%M:%SZ}",
        }


def draft(manifest: Manifest, peer: str, role: str, now: datetime, days: int) -> Invitation:
    """An invitation to be signed, valid from `now` (aware) for so many days. Raises InvitationError."""
    if manifest.membership != "invited":
        raise InvitationError(
            f"{manifest.title} is open to everybody, so nobody needs an invitation.",
            'Set membership to "invited" in its manifest and sign that first.',
        )
    issued = now.astimezone(UTC).replace(microsecond=0)
    try:
        PEER.read(peer, "")
    except FieldError as error:
        raise InvitationError(
            f"“{peer[:60]}” is not a peer id: it{error}.", "The volunteer finds it with skep identity."
        ) from None
    if not 1 <= days <= LONGEST_DAYS:
        raise InvitationError(f"An invitation lasts from 1 to {LONGEST_DAYS} days.", "Give --days a number of those.")
    return Invitation(manifest.id, manifest.publisher.key, peer, role, issued, issued + timedelta(days=days))


def read(raw: bytes, verify: Verify) -> Invitation:
    """The invitation in `raw`, its signature checked by `verify`. Raises InvitationError."""
    body = read_object(raw, LIMIT, _invalid)
    try:
        fields = Object(dict, _FIELDS).read(body, "")
    except FieldError as error:
        raise _invalid(str(error)) from None
    del fields["format"]
    found = Invitation(**fields | {"signature": base64.b64decode(fields["signature"])})
    if not verify(found.publisher, found.signature, found.signed_bytes):
        raise InvitationError("The invitation was changed after it was signed.", _ASK)
    return found


def _invalid(phrase: str) -> InvitationError:
    return InvitationError(f"The invitation is not valid: {phrase}.", _ASK)


def check(found: Invitation, manifest: Manifest, peer: str, now: datetime) -> None:
    """Raise InvitationError, in one sentence, unless it lets `peer` take part in the project at `now` (aware)."""
    if found.project != manifest.id:
        raise InvitationError(f'The invitation is for another project, "{found.project}".', _ASK)
    if found.publisher != manifest.publisher.key:
        raise InvitationError(
            f"The invitation is signed by another key ({fingerprint(found.publisher)}) than the publisher's of "
            f"{manifest.title} ({manifest.fingerprint}).",
            _ASK,
        )
    if found.peer != peer:
        raise InvitationError(
            f"The invitation is for another computer: for {found.peer}, and this one is {peer}.",
            "Give the publisher this computer's identity.",
        )
    if found.expires <= now:
        raise InvitationError(f"The invitation to {manifest.title} expired on {found.expires:%Y-%m-%d}.", _ASK)
    if found.issued > now + LEEWAY:
        raise InvitationError(
            f"The invitation to {manifest.title} begins on {found.issued:%Y-%m-%d} only.",
            "Check this computer's clock, or wait until then.",
        )


def is_good(found: Invitation, manifest: Manifest, peer: str, now: datetime) -> bool:
    """`check` as a question, for what other peers present."""
    try:
        check(found, manifest, peer, now)
    except InvitationError:
        return False
    return True


def end_of(text: str) -> datetime:
    """When the invitation in `text` expires, its signature not looked at. Raises InvitationError."""
    return read(text.encode(), lambda *_: True).expires


def over(title: str) -> InvitationError:
    """What to say when this computer's own invitation expires while it trains."""
    return InvitationError(f"This computer's invitation to {title} expired, so the swarm no longer answers it.", _ASK)


def missing(project: Project) -> InvitationError:
    """What to say where a project wants an invitation and there is none."""
    return InvitationError(
        f"{project.title} is for invited computers, and this one has no invitation to it.",
        "Send its publisher what skep identity prints; skep project accept FILE keeps the invitation you get back.",
    )
