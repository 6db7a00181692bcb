"""Tasks in hivemind's event loops: a call that waits for a stream while garbage is collected, and a cancelled request."""

import asyncio
import contextlib
import functools
import gc
import socket

import hivemind
import pytest
from hivemind.p2p import P2P
from hivemind.proto import dht_pb2

from skep.worker.connection import guards
from unguarded import unguarded_again

PATIENCE = 60.0
LONG = 3.0
"""Seconds within which an answer that has been sent has come."""


async def read_one(_dht, _node, path):
    reader, _writer = await asyncio.open_unix_connection(path)
    return await reader.readexactly(1)


async def collect(_dht, _node):
    gc.collect()


@contextlib.contextmanager
def started(*, guarded):
    with unguarded_again():
        if guarded:
            guards.install()
        dht = hivemind.DHT(start=True, host_maddrs=["/ip4/127.0.0.1/tcp/0"], startup_timeout=PATIENCE)
    try:
        yield dht
    finally:
        dht.shutdown()


def answer(dht, path):
    """What a call returns whose answer is sent after garbage was collected; None when it does not return."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(PATIENCE)
        called = dht.run_coroutine(functools.partial(read_one, path=str(path)), return_future=True)
        connection, _ = server.accept()
        dht.run_coroutine(collect, return_future=True).result(PATIENCE)
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"!")
        try:
            return called.result(LONG)
        except TimeoutError:
            return None


@pytest.mark.parametrize(("guarded", "answered"), [(False, None), (True, b"!")], ids=["stock", "ours"])
def test_a_call_that_waits_for_a_stream_survives_the_garbage_collector(tmp_path, guarded, answered):
    with started(guarded=guarded) as dht:
        assert answer(dht, tmp_path / "s") == answered


async def cancelled(requests):
    """How many tasks a peer still has of requests that another one has cancelled."""
    async with asyncio.timeout(PATIENCE):
        server = await P2P.create(host_maddrs=["/ip4/127.0.0.1/tcp/0"], dht_mode="client")
        client = await P2P.create(initial_peers=await server.get_visible_maddrs(), dht_mode="client")
        begun = asyncio.Semaphore(0)
        ended = asyncio.Semaphore(0)

        async def never_answer(_request, _context):
            begun.release()
            try:
                await asyncio.Event().wait()
            finally:
                ended.release()

        try:
            await server.add_protobuf_handler("slow", never_answer, dht_pb2.PingRequest)
            for _ in range(requests):
                calling = asyncio.create_task(
                    client.call_protobuf_handler(server.peer_id, "slow", dht_pb2.PingRequest(), dht_pb2.PingResponse)
                )
                await begun.acquire()
                calling.cancel()
                await ended.acquire()
            await asyncio.sleep(0)  # the tasks end
            return len(server._client.control._handler_tasks)
        finally:
            await client.shutdown()
            await server.shutdown()


@pytest.mark.parametrize(("guarded", "left"), [(False, 3), (True, 0)], ids=["stock", "ours"])
def test_a_request_that_its_sender_has_cancelled_leaves_nothing(guarded, left):
    with unguarded_again():
        if guarded:
            guards.install()
        assert asyncio.run(cancelled(requests=3)) == left
