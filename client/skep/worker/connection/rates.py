"""The limits on what this peer sends to other peers and takes from them, shared by all its processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from typing import Any, Final

from skep.core.traffic import PIECE_BYTES, Caps, due

LOOK_SECONDS: Final = 1.0
"""A wait looks for a change of the limit this often."""


class Bucket:
    """One direction. Make it before the fork."""

    def __init__(self) -> None:
        self._rate = multiprocessing.Value("d", 0.0, lock=False)
        self._free_at = multiprocessing.Value("d", 0.0)

    @property
    def rate(self) -> float:
        """Bytes per second; 0 for no limit. From any process."""
        return float(self._rate.value)

    @rate.setter
    def rate(self, rate: float) -> None:
        self._rate.value = rate

    async def let_through(self, size: int) -> None:
        """Return when `size` more bytes may have moved."""
        rate = self.rate
        if not rate:
            return
        with self._free_at.get_lock():
            # one clock for all processes of a computer, as monotonic is on the systems on which workers run
            at = self._free_at.value = due(self._free_at.value, time.monotonic(), size, rate)
        while self.rate == rate and (left := at - time.monotonic()) > 0:  # noqa: ASYNC110 - another process may change it
            await asyncio.sleep(min(LOOK_SECONDS, left))


class Rates:
    """Both directions."""

    def __init__(self, caps: Caps) -> None:
        self.up, self.down = Bucket(), Bucket()
        self.use(caps)

    def use(self, caps: Caps) -> None:
        """From now on; from any thread of any process."""
        self.up.rate, self.down.rate = caps


class PacedReader:
    """A stream's reader that takes bytes as the bucket lets them through; what has not been read, the peer cannot send."""

    def __init__(self, reader: Any, bucket: Bucket) -> None:
        self._reader, self._bucket = reader, bucket

    async def readexactly(self, count: int) -> bytes:
        """As asyncio.StreamReader's."""
        if not self._bucket.rate:
            whole: bytes = await self._reader.readexactly(count)
            return whole
        came = bytearray()
        while len(came) < count:
            piece = min(PIECE_BYTES, count - len(came))
            await self._bucket.let_through(piece)
            came += await self._reader.readexactly(piece)
        return bytes(came)


async def write_paced(data: bytes, writer: asyncio.StreamWriter, bucket: Bucket) -> None:
    """Write `data` as the bucket lets it through."""
    view = memoryview(data)
    for offset in range(0, len(view), PIECE_BYTES):
        piece = view[offset : offset + PIECE_BYTES]
        await bucket.let_through(len(piece))
        writer.write(piece)
        await writer.drain()
