"""Averaging among the invited: who asks for a group, sends a part or wants the state must hold an invitation.

A request is judged by the id its connection was authenticated under, which nobody can take on without that identity's
key, and by the invitation for that id, which nobody can make without the publisher's. So it does not matter where the
invitation comes from: it is read from the DHT, where each peer lays down its own, at the first request of a peer that
is not known yet, and remembered until it expires. An all-reduce among peers that know each other asks nobody.
It must not know how the DHT is kept among the invited; `membership` does.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterator, Final  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllreduceException
from hivemind.averaging.group_info import GroupInfo
from hivemind.dht import DHT
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2

from skep.core.project.invitation import TRAINER, Invitation
from skep.worker.swarm.dht_auth import Membership, now

LOOK_PAUSE_SECONDS: Final = 1.0
"""Between two looks into the DHT, so that strangers who knock all the time do not make us ask all the time."""
LOOK_SECONDS: Final = 5.0
PUBLISH_EVERY_SECONDS: Final = 120.0
"""The peers that keep our entry may leave."""


class AdmissionList:
    """The invitations one averager process knows, by peer id."""

    def __init__(self, membership: Membership, dht: DHT) -> None:
        self._membership, self._dht = membership, dht
        self._known: dict[str, Invitation] = {}
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._published = time.monotonic()

    async def admits(self, peer: PeerID, *, averaging: bool = True) -> bool:
        """Whether the peer is invited now, to average or at least to load the state."""
        asked = time.monotonic()
        if self._good(peer) is None:
            async with self._looking:
                if self._looked < asked:  # else somebody looked for all who were waiting
                    await self._look()
        found = self._good(peer)
        return found is not None and (found.role == TRAINER or not averaging)

    def _good(self, peer: PeerID) -> Invitation | None:
        found = self._known.get(str(peer))
        return found if found is not None and found.expires > now() else None

    async def _look(self) -> None:
        await asyncio.sleep(max(0.0, self._looked + LOOK_PAUSE_SECONDS - time.monotonic()))
        self._looked = time.monotonic()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                book = await self._dht.get(self._membership.book, latest=True, return_future=True)
        except TimeoutError:
            return
        entries = book.value if book and isinstance(book.value, dict) else {}
        # the book is the swarm's, so whatever is gone from it or expired is forgotten here too
        self._known = {peer: found for peer, found in self._known.items() if found.expires > now()}
        for peer, entry in entries.items():
            if isinstance(peer, str) and isinstance(entry.value, bytes):
                found = self._membership.good(entry.value, peer)
                self._known |= {peer: found} if found else {}

    async def publish_again(self) -> None:
        """Lay our own invitation down once more, when that is due."""
        if time.monotonic() - self._published >= PUBLISH_EVERY_SECONDS:
            self._published = time.monotonic()
            await self._dht.store(**self._membership.record, return_future=True)


class MembersOnly(DecentralizedAverager):
    """Mixed into an averager before everything else, turns away whoever is not invited. Open projects pass None."""

    def __init__(self, *args: Any, membership: Membership | None = None, **kwargs: Any) -> None:
        # before hivemind's constructor, which forks
        self._membership = membership
        self._roll: AdmissionList | None = None
        super().__init__(*args, **kwargs)

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        if not await self._admits(context.remote_id):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        async for message in super().rpc_join_group(request, context):
            yield message

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        if not await self._admits(context.remote_id):
            yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        async for message in super().rpc_aggregate_part(stream, context):
            yield message

    async def rpc_download_state(
        self, request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        if not await self._admits(context.remote_id, averaging=False):
            return
        async for message in super().rpc_download_state(request, context):
            yield message

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Any:
        """A leader could name a stranger as a groupmate: then nothing is sent to anybody."""
        for peer in group_info.peer_ids:
            if peer != self.peer_id and not await self._admits(peer):
                raise AllreduceException(f"{peer} is in the group and not invited")
        return await super()._aggregate_with_group(group_info, min_vector_size, **kwargs)

    async def _step(self, **kwargs: Any) -> None:
        again = asyncio.create_task(self._known().publish_again()) if self._membership else None
        try:
            await super()._step(**kwargs)
        finally:
            if again:
                again.cancel()

    async def _admits(self, peer: PeerID, *, averaging: bool = True) -> bool:
        return self._membership is None or await self._known().admits(peer, averaging=averaging)

    def _known(self) -> AdmissionList:
        # made on first use, in the averager's own process and event loop
        if self._roll is None:
            assert self._membership is not None
            self._roll = AdmissionList(self._membership, self.dht)
        return self._roll
