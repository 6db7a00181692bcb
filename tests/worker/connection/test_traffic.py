"""Bytes are counted and frame sizes limited in the two functions that carry all of hivemind's streams."""

import asyncio
import multiprocessing

import pytest
from hivemind.p2p import P2P

from english import in_english
from skep.worker.connection.network import ByteCounters, watch_streams

HEADER = P2P.HEADER_LEN
LIMIT = 300_000


@pytest.fixture
def watched():
    stock = P2P.send_raw_data, P2P.receive_raw_data
    made = ByteCounters()
    watch_streams(made, limit=LIMIT)
    yield made
    P2P.send_raw_data, P2P.receive_raw_data = map(staticmethod, stock)


def send(*messages):
    """Send the messages through a real socket; returns what was received, or the error."""

    async def main():
        arrived = asyncio.Queue()

        async def receive(reader, writer):
            try:
                for _ in messages:
                    await arrived.put(await P2P.receive_raw_data(reader))
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                await arrived.put(error)
            writer.close()

        async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for message in messages:
                await P2P.send_raw_data(message, writer)
            got = [await arrived.get() for _ in messages]
            writer.close()
            await writer.wait_closed()
        return got

    return asyncio.run(main())


def test_what_is_streamed_arrives_whole_and_is_counted_both_ways(watched):
    messages = [b"", b"x", bytes(300_000)]
    assert send(*messages) == messages
    expected = sum(len(message) + HEADER for message in messages)
    assert (watched.sent.value, watched.received.value) == (expected, expected)


def test_a_frame_at_the_limit_passes_and_one_over_it_is_refused_unread(watched):
    assert send(bytes(LIMIT)) == [bytes(LIMIT)]
    before = watched.received.value
    (refused,) = send(bytes(LIMIT + 1))
    assert isinstance(refused, ConnectionError)
    assert "300001 bytes, over the limit of 300000" in in_english(refused)
    assert watched.received.value == before


def test_forked_processes_count_into_the_same_numbers(watched):
    context = multiprocessing.get_context("fork")
    child = context.Process(target=send, args=(b"12345678",))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert watched.sent.value == watched.received.value == 8 + HEADER
