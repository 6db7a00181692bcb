"""Sending this peer's state to newcomers: from one copy, to a few of them at a time. Runs in the averager's process.

Stock behaviour that this corrects, each covered by a test: the tensors that are sent are those that training changes,
so later ones belong to a later epoch; every request takes memory, however many there are; a transfer that broke off
begins again; a transfer takes as much of the link from a round as it can get.

`rpc_fetch_state` is skep's own call. Its first frame carries an Offer or says that this peer is busy, and it can begin
in the middle of a tensor: where a transfer of the same copy broke off, or one from another donor, as far as the bytes
are the same here, from the first one on. From where they differ a newcomer begins anew, since what it takes over must be
one peer's state as it was at one time. So it does in the state of another epoch. In one epoch the whole state is the
same where a peer, the state keeper for example, got it from the other; trainers have the same parameters after an
uncompressed round of the state, but not the same statistics, and after a compressed one nothing. Peers without this
call use hivemind's `rpc_download_state`, where an empty answer means "ask another peer".
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec
import torch
from hivemind.compression import CompressionBase, CompressionInfo
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils.streaming import split_for_streaming

from skep.worker.connection.streams import caller
from skep.worker.swarm.state.digests import begun
from skep.worker.swarm.state.speed import Speed
from skep.worker.swarm.state.uplink import Pace, Uplink

PART_BYTES: Final = 512 * 1024
"""Bytes of a state per frame; hivemind's 64 KiB cause much overhead at both ends."""
COPY_SECONDS: Final = 10.0
"""Longest time until a newcomer hears that there is no copy yet: during a round of the state, none can be made. Well below
a newcomer's STALL_SECONDS."""
AT_ONCE: Final = 2
"""Newcomers served at a time: more would each take longer than an epoch or two. Also the most copies in memory."""
IDLE_SECONDS: Final = 60.0
"""A newcomer that has taken no frame for this long counts as gone."""
KEPT_SECONDS: Final = 60.0
"""How long a copy is kept after its last frame, for newcomers that come together."""
LONGEST_KEPT_SECONDS: Final = 600.0
"""For one that broke off, it is kept for as long as this newcomer was served: KEPT_SECONDS at least, and this at most."""
LOOK_SECONDS: Final = 30.0
"""Between two looks whether newcomers are gone and copies needed, when nobody else comes."""
PAUSE_SECONDS: Final = 10.0
"""Longest time without a frame in a round, well below a newcomer's STALL_SECONDS."""
STOCK_PAUSE_SECONDS: Final = 2.0
"""The same for a stock newcomer, which waits for 3 s."""


class Offer(msgspec.Struct, frozen=True):
    """What a donor sends before the tensors. `copy` names the copy, so that a transfer can go on in it; "" when busy.

    `metadata` is hivemind's. In another copy than the newcomer's, the transfer goes on after `tensors` whole ones and
    `part` bytes of the next, which it has already.
    """

    copy: str = ""
    metadata: bytes = b""
    tensors: int = 0
    part: int = 0


class Place(msgspec.Struct, frozen=True):
    """Where a transfer of `copy` goes on: `tensors` whole ones have arrived, and `part` bytes of the next.

    `digests` are those of the whole ones, then that of the part.
    """

    copy: str = ""
    tensors: int = 0
    part: int = 0
    digests: tuple[bytes, ...] = ()


@dataclass(eq=False)
class Copy:
    """A state as it was at one time; nothing changes these tensors. `version` is the label of that time."""

    version: float
    metadata: bytes
    tensors: list[torch.Tensor]
    infos: list[CompressionInfo]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    used_at: float = 0.0
    awaited_until: float = 0.0
    """Monotonic seconds: of its last frame, and until when a newcomer that broke off may come back."""
    served: bool = False
    """Whether a newcomer has begun to load it."""


@dataclass(eq=False)
class Transfer:
    """One newcomer that is served from `copy`; `taken_at` is when it took its last frame, in monotonic seconds."""

    copy: Copy | None
    peer: PeerID | None
    begun_at: float
    taken_at: float
    speed: Speed = field(default_factory=Speed)
    whole: bool = False
    """Whether all of it was sent."""


class StateDonor:
    """Sends copies of the state. `take` makes one; `version` is the label that one made now would have. While `uplink`
    is busy with a round, they are sent slowly; `idle`, `kept` and `copying` as IDLE_SECONDS, KEPT_SECONDS and
    COPY_SECONDS. `clock` is monotonic.

    Each peer is served once: what it asks for anew ends what it has been sent. When all places are taken, one that is
    slow (see `speed`) makes way for the next newcomer. There is one copy in memory; a second one, of now, while others
    load one that is older than the epoch before this one, or may come back for it. A newcomer that would wait too long
    for a copy is told that this peer is busy; the copy is made all the same, and is there when it asks again.
    """

    def __init__(
        self,
        take: Callable[[], Awaitable[Copy]],
        version: Callable[[], float],
        codec: CompressionBase,
        uplink: Uplink,
        *,
        idle: float = IDLE_SECONDS,
        kept: float = KEPT_SECONDS,
        copying: float = COPY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take, self._version, self._codec, self._uplink = take, version, codec, uplink
        self._idle, self._kept, self._copying, self._clock = idle, kept, copying, clock
        self._copies: list[Copy] = []
        self._transfers: list[Transfer] = []
        self._taking: asyncio.Task[Copy] | None = None
        self._awaited_until = 0.0
        self._looks = False
        self._choosing = asyncio.Lock()

    async def stock(self) -> AsyncGenerator[averaging_pb2.DownloadData, None]:
        """The frames of hivemind's call; none when this peer is busy."""
        async with self._place("") as transfer:
            metadata = transfer.copy.metadata if transfer and transfer.copy else None
            async with aclosing(self._parts(transfer, Place(), STOCK_PAUSE_SECONDS)) as parts:
                async for part in parts:
                    yield averaging_pb2.DownloadData(tensor_part=part, metadata=metadata)
                    metadata = None

    async def fetch(self, place: Place) -> AsyncGenerator[averaging_pb2.DownloadData, None]:
        """The frames of skep's call, from `place` on if it is in the copy that is kept, or as far as that is the same."""
        async with self._place(place.copy) as transfer:
            if transfer and transfer.copy and transfer.copy.id != place.copy:
                place = await self._common(transfer, place)
            copy = transfer.copy if transfer else None
            offer = Offer(copy.id, copy.metadata, place.tensors, place.part) if copy else Offer()
            del copy
            yield averaging_pb2.DownloadData(metadata=msgspec.msgpack.encode(offer))
            async with aclosing(self._parts(transfer, place, PAUSE_SECONDS)) as parts:
                async for part in parts:
                    yield averaging_pb2.DownloadData(tensor_part=part)

    def tidy(self) -> None:
        """Forget newcomers that are gone, and copies that nobody needs any more."""
        now = self._clock()
        for each in self._transfers:
            if now - each.taken_at > self._idle:
                self._dismiss(each)
        self._transfers = [each for each in self._transfers if each.copy]
        used = self._used()
        self._copies = [
            copy for copy in self._copies if copy in used or now <= max(copy.awaited_until, copy.used_at + self._kept)
        ]

    @asynccontextmanager
    async def _place(self, wanted: str) -> AsyncIterator[Transfer | None]:
        """A place for a newcomer, in the copy `wanted` if that is one that is kept; None when this peer is busy."""
        async with self._choosing:
            transfer = await self._begun(wanted, caller.get())
        try:
            yield transfer
        finally:
            if transfer:
                self._dismiss(transfer)

    def _dismiss(self, transfer: Transfer) -> None:
        """Take its place away; its frames end after the next one. The memory must not wait for that."""
        copy, transfer.copy = transfer.copy, None
        if copy is None:
            return
        copy.used_at = now = self._clock()
        if not transfer.whole:
            served = max(self._kept, transfer.taken_at - transfer.begun_at)
            copy.awaited_until = max(copy.awaited_until, now + min(LONGEST_KEPT_SECONDS, served))

    async def _begun(self, wanted: str, peer: PeerID | None) -> Transfer | None:
        for each in self._transfers:
            if peer is not None and each.peer == peer:
                self._dismiss(each)
        self.tidy()
        if len(self._transfers) >= AT_ONCE:
            slow = next((each for each in self._transfers if each.speed.is_slow), None)
            if slow is None:
                return None
            self._dismiss(slow)
            self._transfers.remove(slow)
        copy, now = await self._copy_for(wanted), self._clock()
        if copy is None:
            return None
        copy.served = True
        transfer = Transfer(copy, peer, begun_at=now, taken_at=now)
        self._transfers.append(transfer)
        return transfer

    async def _copy_for(self, wanted: str) -> Copy | None:
        """A copy for a newcomer; None when it takes too long to make one."""
        if (found := self._fitting(wanted)) is not None:
            return found
        if self._taking is None:
            self._make_room()
            self._taking, self._awaited_until = asyncio.create_task(self._make()), self._clock() + self._copying
        taking = self._taking
        # those that come while one waits here have waited as long
        await asyncio.wait({taking}, timeout=max(0.0, self._awaited_until - self._clock()))
        return taking.result() if taking.done() else None

    async def _make(self) -> Copy:
        try:
            made = await self._take()
        finally:
            self._taking = None
        made.used_at = self._clock()
        self._copies.append(made)
        self._look_later()
        return made

    def _fitting(self, wanted: str) -> Copy | None:
        """The copy `wanted`, or one that is new enough."""
        for copy in self._copies:
            if copy.id == wanted:
                copy.awaited_until = 0.0  # until it breaks off again
                return copy
        now, used = self._version(), self._used()
        for copy in self._copies:
            if copy.version == now or (copy.version >= now - 1 and (copy in used or not copy.served)):
                return copy
        return None

    def _make_room(self) -> None:
        """Forget copies before the next one takes as much memory again."""
        now, used = self._clock(), self._used()
        spare = sorted((copy for copy in self._copies if copy not in used), key=lambda copy: copy.awaited_until)
        while spare and (spare[0].awaited_until <= now or len(self._copies) >= AT_ONCE):
            self._copies.remove(spare.pop(0))

    def _used(self) -> set[Copy]:
        return {each.copy for each in self._transfers if each.copy}

    def _look_later(self) -> None:
        """Tidy without being asked, as long as there is a copy."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks = False
        self.tidy()
        if self._copies:
            self._look_later()

    async def _common(self, transfer: Transfer, place: Place) -> Place:
        """How much of what has arrived from another copy is the same in this one."""
        if len(place.digests) != place.tensors + (place.part > 0):
            return Place()
        for number, digest in enumerate(place.digests):
            transfer.taken_at = self._clock()
            part = place.part if number == place.tensors else None
            if not transfer.copy or not await asyncio.to_thread(self._is_same, transfer.copy, number, part, digest):
                return Place(tensors=number)
        return place

    def _is_same(self, copy: Copy, number: int, part: int | None, digest: bytes) -> bool:
        """Whether this is the digest of that tensor, or of its first `part` bytes."""
        if number >= len(copy.tensors) or (part or 0) % PART_BYTES:
            return False
        whole = self._compressed(copy, number)
        ours = begun(next(split_for_streaming(whole, PART_BYTES)))
        ours.update(whole.buffer[:part])
        return ours.digest() == digest

    async def _parts(
        self, transfer: Transfer | None, place: Place, longest: float
    ) -> AsyncGenerator[runtime_pb2.Tensor, None]:
        skipped, number, pace = place.part // PART_BYTES, place.tensors, Pace(self._uplink, longest)
        while transfer and transfer.copy and number < len(transfer.copy.tensors):
            # in another thread: this one averages
            whole = await asyncio.to_thread(self._compressed, transfer.copy, number)
            for part in islice(split_for_streaming(whole, PART_BYTES), skipped, None):
                sent_at, busy = self._clock(), self._uplink.busy
                yield part
                transfer.taken_at = self._clock()
                seconds = transfer.taken_at - sent_at
                if not (busy or self._uplink.busy):  # a round makes it slow
                    transfer.speed.took(len(part.buffer), seconds)
                await pace.taken(seconds)
                if _is_over(transfer):
                    return
            skipped, number = 0, number + 1
        if transfer:
            transfer.whole = True

    def _compressed(self, copy: Copy, number: int) -> runtime_pb2.Tensor:
        return self._codec.compress(copy.tensors[number], copy.infos[number], allow_inplace=False)


def _is_over(transfer: Transfer) -> bool:
    """Whether its place was taken away, which happens between two frames."""
    return transfer.copy is None
