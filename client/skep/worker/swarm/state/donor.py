"""Sending this peer's state to newcomers: from one copy, to a few of them at a time. Runs in the averager's process.

Stock behaviour that this corrects, each covered by a test: the tensors that are sent are those that training changes,
so later ones belong to a later epoch; every request takes memory, however many there are; a transfer that broke off
begins again.

`rpc_fetch_state` is skep's own call. Its first frame carries an Offer or says that this peer is busy, and it can begin
in the middle of a tensor. Peers without it use hivemind's `rpc_download_state`, where an empty answer means "ask
another peer".
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec
import torch
from hivemind.compression import CompressionBase, CompressionInfo
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils.streaming import split_for_streaming

PART_BYTES: Final = 512 * 1024
"""Bytes of a state per frame; hivemind's 64 KiB cause much overhead at both ends."""
AT_ONCE: Final = 2
"""Newcomers served at a time: more would each take longer than an epoch or two."""
IDLE_SECONDS: Final = 60.0
"""A newcomer that has taken no frame for this long counts as gone."""
KEPT_SECONDS: Final = 60.0
"""How long a copy is kept after its last frame, for newcomers that come together and for one that lost its connection."""


class Offer(msgspec.Struct, frozen=True):
    """What a donor sends before the tensors. `copy` names the copy, so that a transfer can go on in it; "" when busy.

    `metadata` is hivemind's.
    """

    copy: str = ""
    metadata: bytes = b""


class Place(msgspec.Struct, frozen=True):
    """Where a transfer of `copy` goes on: `tensors` whole ones have arrived, and `part` bytes of the next."""

    copy: str = ""
    tensors: int = 0
    part: int = 0


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
    """Sends copies of the state. `take` makes one; `version` is the label that one made now would have.

    There is at most one copy in memory. While newcomers load one that is older than the epoch before this one, others
    are sent away as if all places were taken.
    """

    def __init__(
        self, take: Callable[[], Awaitable[Copy]], version: Callable[[], float], codec: CompressionBase
    ) -> None:
        self._take, self._version, self._codec = take, version, codec
        self._copy: Copy | None = None
        self._transfers: list[Transfer] = []
        self._used_at = 0.0
        self._choosing = asyncio.Lock()

    async def stock(self) -> AsyncGenerator[averaging_pb2.DownloadData, None]:
        """The frames of hivemind's call; none when this peer is busy."""
        async with self._place("") as transfer:
            metadata = transfer.copy.metadata if transfer and transfer.copy else None
            for part in self._parts(transfer, Place()):
                yield averaging_pb2.DownloadData(tensor_part=part, metadata=metadata)
                metadata = None

    async def fetch(self, place: Place) -> AsyncGenerator[averaging_pb2.DownloadData, None]:
        """The frames of skep's call, from `place` on if it is in the copy that is kept, else from the beginning."""
        async with self._place(place.copy) as transfer:
            copy = transfer.copy if transfer else None
            offer = Offer(copy.id, copy.metadata) if copy else Offer()
            del copy
            yield averaging_pb2.DownloadData(metadata=msgspec.msgpack.encode(offer))
            for part in self._parts(transfer, place if place.copy == offer.copy else Place()):
                yield averaging_pb2.DownloadData(tensor_part=part)

    def tidy(self) -> None:
        """Forget newcomers that are gone, and a copy that nobody needs any more."""
        now = time.monotonic()
        for each in self._transfers:
            if now - each.taken_at > IDLE_SECONDS:
                each.copy = None  # its frames end; the memory must not wait for it
        self._transfers = [each for each in self._transfers if each.copy]
        if not self._transfers and now - self._used_at > KEPT_SECONDS:
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

    def _parts(self, transfer: Transfer | None, place: Place) -> Iterator[runtime_pb2.Tensor]:
        skipped, number = place.part // PART_BYTES, place.tensors
        while transfer and transfer.copy and number < len(transfer.copy.tensors):
            info = transfer.copy.infos[number]
            whole = self._codec.compress(transfer.copy.tensors[number], info, allow_inplace=False)
            for part in islice(split_for_streaming(whole, PART_BYTES), skipped, None):
                yield part
                transfer.taken_at = time.monotonic()
                if _is_over(transfer):
                    return
            skipped, number = 0, number + 1


def _is_over(transfer: Transfer) -> bool:
    """Whether its place was taken away, which happens between two frames."""
    return transfer.copy is None
