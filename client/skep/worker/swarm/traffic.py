"""Counts the bytes that cross the wire in averaging and state transfers, and refuses frames no honest peer sends.

Everything a peer streams goes through two functions of hivemind's P2P class; they are wrapped here, once per process
tree, before the first fork. The small DHT requests travel another way and are not counted.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from typing import Final

from hivemind.p2p import P2P

FRAME_LIMIT: Final = 64 * 1024 * 1024
"""Longest stream frame in bytes we accept. hivemind itself sends tensor parts of 0.5 MiB and state parts of 2 MiB."""


@dataclass(frozen=True)
class ByteCounters:
    """Bytes since the start of the worker, shared by it and the processes it forks."""

    sent: Synchronized[int]
    received: Synchronized[int]

    @staticmethod
    def fresh() -> ByteCounters:
        return ByteCounters(mp.Value("Q", 0), mp.Value("Q", 0))

    def count_sent(self, size: int) -> None:
        with self.sent.get_lock():
            self.sent.value += size

    def count_received(self, size: int) -> None:
        with self.received.get_lock():
            self.received.value += size


def watch_streams(traffic: ByteCounters) -> None:
    """Count every stream frame of this process and its later forks into `traffic`, and cap the frame size."""
    send_raw = P2P.send_raw_data

    async def send_raw_data(data: bytes, writer: asyncio.StreamWriter, *, chunk_size: int = 2**16) -> None:
        await send_raw(data, writer, chunk_size=chunk_size)
        traffic.count_sent(len(data) + P2P.HEADER_LEN)

    async def receive_raw_data(reader: asyncio.StreamReader) -> bytes:
        header = await reader.readexactly(P2P.HEADER_LEN)
        length = int.from_bytes(header, P2P.BYTEORDER)
        if length > FRAME_LIMIT:
            raise ConnectionError(f"a peer announced a frame of {length} bytes, over the limit of {FRAME_LIMIT}")
        data = await reader.readexactly(length)
        traffic.count_received(length + P2P.HEADER_LEN)
        return data

    P2P.send_raw_data = staticmethod(send_raw_data)
    P2P.receive_raw_data = staticmethod(receive_raw_data)
