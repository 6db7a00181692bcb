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
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils.streaming import split_for_streaming

from skep.worker.swarm.state.digests import begun
from skep.worker.swarm.state.uplink import Pace, Uplink

PART_BYTES: Final = 512 * 1024
"""Bytes of a state per frame; hivemind's 64 KiB cause much overhead at both ends."""
AT_ONCE: Final = 2
"""Newcomers served at a time: more would each take longer than an epoch or two."""
IDLE_SECONDS: Final = 60.0
"""A newcomer that has taken no frame for this long counts as gone."""
KEPT_SECONDS: Final = 60.0
"""How long a copy is kept after its last frame, for newcomers that come together and for one that lost its connection."""
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


@dataclass(eq=False)
class Transfer:
    """One newcomer that is served from `copy`; `taken_at` is when it took its last frame, in monotonic seconds."""

    copy: Copy | None
    taken_at: float


class StateDonor:
    """Sends copies of the state. `take` makes one; `version` is the label that one made now would have. While `uplink`
    is busy with a round, they are sent slowly; `idle` and `kept` as IDLE_SECONDS and KEPT_SECONDS.

    There is at most one copy in memory. While newcomers load one that is older than the epoch before this one, others
    are sent away as if all places were taken.
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
    ) -> None:
        self._take, self._version, self._codec, self._uplink = take, version, codec, uplink
        self._idle, self._kept = idle, kept
        self._copy: Copy | None = None
        self._transfers: list[Transfer] = []
        self._used_at = 0.0
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
        """Forget newcomers that are gone, and a copy that nobody needs any more."""
        now = time.monotonic()
        for each in self._transfers:
            if now - each.taken_at > self._idle:
                each.copy = None  # its frames end; the memory must not wait for it
        self._transfers = [each for each in self._transfers if each.copy]
        if not self._transfers and now - self._used_at > self._kept:
            self._copy = None

    @asynccontextmanager
    async def _place(self, wanted: str) -> AsyncIterator[Transfer | None]:
        """A place for a newcomer, in the copy `wanted` if that is the one that is kept; None when this peer is busy."""
        async with self._choosing:
            transfer = await self._begun(wanted)
        try:
            yield transfer
        finally:
            if transfer:
                self._used_at, transfer.copy = time.monotonic(), None

    async def _begun(self, wanted: str) -> Transfer | None:
        self.tidy()
        copy, now = self._copy, self._version()
        if len(self._transfers) >= AT_ONCE or (self._transfers and copy and copy.version < now - 1):
            return None
        if copy is None or (not self._transfers and copy.version != now and copy.id != wanted):
            copy = self._copy = None  # before the next one takes as much memory again
            copy = self._copy = await self._take()
        self._transfers.append(Transfer(copy, time.monotonic()))
        return self._transfers[-1]

    async def _common(self, transfer: Transfer, place: Place) -> Place:
        """How much of what has arrived from another copy is the same in this one."""
        if len(place.digests) != place.tensors + (place.part > 0):
            return Place()
        for number, digest in enumerate(place.digests):
            transfer.taken_at = time.monotonic()
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
                sent_at = time.monotonic()
                yield part
                transfer.taken_at = time.monotonic()
                await pace.taken(transfer.taken_at - sent_at)
                if _is_over(transfer):
                    return
            skipped, number = 0, number + 1

    def _compressed(self, copy: Copy, number: int) -> runtime_pb2.Tensor:
        return self._codec.compress(copy.tensors[number], copy.infos[number], allow_inplace=False)


def _is_over(transfer: Transfer) -> bool:
    """Whether its place was taken away, which happens between two frames."""
    return transfer.copy is None
