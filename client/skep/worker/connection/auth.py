"""Invitations in the swarm: presenting this peer's, and checking others' in the DHT and in averaging.

hivemind's authorizer signs DHT requests with a random key and does not check who sent them. Here the key is that of the
libp2p identity, and the peer id derived from it must be both the invitation's and the connection's, so another peer can
use neither an invitation nor a signed request.

In averaging, the source of an invitation does not matter, since only the publisher can make one: it is read from the
DHT, where each peer stores its own, at the first request of an unknown peer, and cached until it expires. An all-reduce
among known peers needs no look-up. A revoked invitation (`revoked`) counts nowhere, from the next request on.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import hivemind
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from hivemind.dht import DHTID, protocol
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.p2p import PeerID
from hivemind.proto.auth_pb2 import AccessToken
from hivemind.proto.crypto_pb2 import PrivateKey
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.auth import AuthRole, AuthRPCWrapper, TokenAuthorizerBase
from hivemind.utils.crypto import RSAPrivateKey

from skep.core.errors import InvitationError, SwarmError
from skep.core.project import invitation
from skep.core.project.addresses import peer_id_of
from skep.core.project.invitation import Invitation
from skep.core.project.manifest import Manifest
from skep.core.text import Text
from skep.signatures import is_valid
from skep.worker.connection import guards
from skep.worker.connection.revoked import RevokedPeers

PUBLISH_SECONDS: Final = 15.0
LOOK_PAUSE_SECONDS: Final = 1.0
"""Between two look-ups in the DHT, so that many requests of unknown peers do not cause many look-ups."""
LOOK_SECONDS: Final = 5.0
PUBLISH_EVERY_SECONDS: Final = 120.0
"""Repeated, because the peers that store our entry may leave."""
READ_AT_MOST: Final = 4096
"""Invitations whose verified signatures are cached."""


class Membership:
    """This peer's invitation to a project, and the check of other peers' invitations."""

    def __init__(self, manifest: Manifest, text: str, identity_path: Path, revoked: RevokedPeers | None = None) -> None:
        """`text` is the invitation's file. Raises InvitationError when it does not let this peer in."""
        self.manifest, self._revoked = manifest, revoked
        self.raw = text.encode()
        self.key = IdentityKey(identity_path)
        self.peer = peer_of_key(self.key.get_public_key().to_bytes())
        self._read = functools.lru_cache(READ_AT_MOST)(functools.partial(invitation.read, verify=is_valid))
        self.own = self._judge_own()

    def _judge_own(self) -> Invitation:
        own = self._read(self.raw)
        invitation.check(own, self.manifest, self.peer, now())
        if self.is_void(own):
            raise invitation.revoked(self.manifest.title)
        return own

    def good(self, raw: bytes, peer: str) -> Invitation | None:
        """The invitation in `raw` if it admits `peer` now, from any source."""
        try:
            found = self._read(raw)
        except InvitationError:
            return None
        return found if invitation.is_good(found, self.manifest, peer, now()) and not self.is_void(found) else None

    def is_void(self, found: Invitation) -> bool:
        """Whether the publisher has revoked the invitation."""
        return self._revoked is not None and self._revoked.voids(found)

    @property
    def gives_state(self) -> bool:
        """Whether newcomers take the state from this peer."""
        return invitation.gives_state(self.own, self.manifest)

    @property
    def book(self) -> str:
        """The DHT key under which the swarm's peers store their invitations, by peer id."""
        return f"{self.manifest.run_id}_invitations"

    @property
    def book_id(self) -> bytes:
        """The same as records name it."""
        found: bytes = DHTID.generate(source=self.book).to_bytes()
        return found

    @property
    def record(self) -> dict[str, Any]:
        """This peer's entry under `book`, as arguments of dht.store."""
        left = (self.own.expires - now()) / timedelta(seconds=1)
        return {"key": self.book, "subkey": self.peer, "value": self.raw, "expiration_time": get_dht_time() + left}

    def publish(self, dht: hivemind.DHT) -> None:
        """Store this peer's invitation in the DHT, where others look it up. Raises SwarmError."""
        stored = dht.store(**self.record, return_future=True)
        with contextlib.suppress(TimeoutError):
            if stored.result(PUBLISH_SECONDS):
                return
        raise SwarmError(Text("swarm.swarm_did_not_take_computer"), Text("round.skep_tries_again"))


@contextlib.contextmanager
def guarded(membership: Membership | None, *, map_port: bool = False) -> Iterator[dict[str, Any]]:
    """Options for a DHT started inside the context, with the guards of this process (`guards`).

    With a membership it answers invited peers only, and accepts only their answers. `map_port` lets p2pd ask the router
    to forward a port (UPnP, NAT-PMP), which stock hivemind always does.
    """
    guards.install()
    # look-ups ask the others anyway, and answer from the storage alone: what is cached could hide it
    router = {"nat_port_map": map_port, "cache_locally": False, "cache_nearest": 0}
    if membership is None:
        yield router | {"record_validators": [guards.RecordGuard()]}
        return
    # the DHT's process is forked from this one, and keeps the wrapper that is set when it starts
    stock = protocol.AuthRPCWrapper
    protocol.AuthRPCWrapper = PeerBoundAuth
    try:
        yield router | {
            "authorizer": InvitedAuthorizer(membership),
            "record_validators": [guards.RecordGuard(lasting=membership.book_id), InvitationValidator(membership)],
        }
    finally:
        protocol.AuthRPCWrapper = stock


def now() -> datetime:
    return datetime.now(UTC)


@functools.lru_cache(READ_AT_MOST)
def peer_of_key(public: bytes) -> str:
    """The peer id of an RSA public key in OpenSSH's format, as tokens carry it; "" for anything else."""
    try:
        key = serialization.load_ssh_public_key(public)
    except (ValueError, UnsupportedAlgorithm):
        return ""
    if not isinstance(key, RSAPublicKey):
        return ""
    return peer_id_of(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))


class IdentityKey(RSAPrivateKey):
    """The libp2p identity's key, instead of hivemind's random one."""

    def __init__(self, identity_path: Path) -> None:
        der = PrivateKey.FromString(identity_path.read_bytes()).data
        self._private_key = serialization.load_der_private_key(der, password=None)


class InvitedAuthorizer(TokenAuthorizerBase):
    """Signs every DHT request and answer with the identity's key, and attaches the invitation."""

    def __init__(self, membership: Membership) -> None:
        super().__init__(membership.key)
        self._membership = membership

    async def get_token(self) -> AccessToken:
        public = self._membership.key.get_public_key().to_bytes()
        return AccessToken(username=self._membership.peer, public_key=public, signature=self._membership.raw)

    def is_token_valid(self, access_token: AccessToken) -> bool:
        peer = peer_of_key(access_token.public_key)
        return bool(peer) and self._membership.good(access_token.signature, peer) is not None

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:  # noqa: ARG002 - the base class's name
        """Never: an invitation lasts until it expires."""
        return False


class PeerBoundAuth(AuthRPCWrapper):
    """Rejects signed requests and answers that another peer forwards: the signer must be the remote peer."""

    def __getattribute__(self, name: str) -> Any:
        call = super().__getattribute__(name)
        if not name.startswith("rpc_"):
            return call
        serves = object.__getattribute__(self, "_role") is AuthRole.SERVICER

        @functools.wraps(call)
        async def tied(request: Any, *args: Any, **kwargs: Any) -> Any:
            if serves and peer_of_key(request.auth.client_access_token.public_key) != str(args[0].remote_id):
                return None
            response = await call(request, *args, **kwargs)
            if serves or response is None:
                return response
            called = object.__getattribute__(self, "_stub")._peer  # noqa: SLF001 - hivemind has no other way
            return response if peer_of_key(response.auth.service_access_token.public_key) == str(called) else None

        return tied


class InvitationValidator(RecordValidatorBase):
    """Accepts only valid invitations in the DHT's invitation record, each under its own peer id.

    Otherwise any member could overwrite another's entry, and so have that peer rejected.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._key = membership.book_id

    def validate(self, record: DHTRecord) -> bool:
        if record.key != self._key:
            return True
        try:
            peer, raw = (MSGPackSerializer.loads(part) for part in (record.subkey, record.value))
        except Exception:  # noqa: BLE001 - untrusted bytes: on any error they are not an entry
            return False
        return isinstance(peer, str) and isinstance(raw, bytes) and self._membership.good(raw, peer) is not None


class AdmissionList:
    """The invitations one averager process knows, by peer id."""

    def __init__(self, membership: Membership, dht: hivemind.DHT, patience: float = LOOK_SECONDS) -> None:
        """A look-up in the DHT takes at most `patience` seconds."""
        self._membership, self._dht, self._patience = membership, dht, patience
        self._known: dict[str, Invitation] = {}
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._published = time.monotonic()

    async def admits(self, peer: PeerID) -> bool:
        """Whether the peer may enter rounds now."""
        found = await self._invitation_of(peer)
        return found is not None and invitation.averages(found)

    async def may_load(self, peer: PeerID) -> bool:
        """Whether the peer is a member now; each of them may load the state."""
        return await self._invitation_of(peer) is not None

    async def may_give(self, peer: PeerID) -> bool:
        """Whether a state may be taken from the peer now."""
        found = await self._invitation_of(peer)
        return found is not None and invitation.gives_state(found, self._membership.manifest)

    @property
    def gives_state(self) -> bool:
        """Whether others take the state from this peer."""
        return self._membership.gives_state

    async def _invitation_of(self, peer: PeerID) -> Invitation | None:
        asked = time.monotonic()
        if self._good(peer) is None:
            async with self._looking:
                if self._looked < asked:  # else another request's look-up has answered this one too
                    await self._look()
        return self._good(peer)

    def _good(self, peer: PeerID) -> Invitation | None:
        found = self._known.get(str(peer))
        is_good = found is not None and found.expires > now() and not self._membership.is_void(found)
        return found if is_good else None

    async def _look(self) -> None:
        await asyncio.sleep(max(0.0, self._looked + LOOK_PAUSE_SECONDS - time.monotonic()))
        self._looked = time.monotonic()
        try:
            async with asyncio.timeout(self._patience):
                book = await self._dht.get(self._membership.book, latest=True, return_future=True)
        except TimeoutError:
            return
        entries = book.value if book and isinstance(book.value, dict) else {}
        # keep only invitations that have not expired
        self._known = {peer: found for peer, found in self._known.items() if found.expires > now()}
        for peer, entry in entries.items():
            if isinstance(peer, str) and isinstance(entry.value, bytes):
                found = self._membership.good(entry.value, peer)
                self._known |= {peer: found} if found else {}

    async def publish_again(self) -> None:
        """Store our own invitation again, when that is due."""
        if time.monotonic() - self._published >= PUBLISH_EVERY_SECONDS:
            self._published = time.monotonic()
            await self._dht.store(**self._membership.record, return_future=True)
