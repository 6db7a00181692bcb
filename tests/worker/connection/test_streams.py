"""How many streams a peer can open to another one's p2pd, and how many of its messages are read before one is judged."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from hivemind.p2p import P2P
from hivemind.proto import averaging_pb2

from skep.worker.connection import guards, streams
from skep.worker.connection.streams import BY_CALL, OF_ONE_PEER, PARTS, PREFETCHED, Bounds, Limits
from unguarded import unguarded_again

NAME = "parts"
MORE = 3 * OF_ONE_PEER
PATIENCE = 30.0
QUIET = 1.0
"""Seconds after which nothing more comes."""


@pytest.fixture(params=["stock", "ours"])
def guarded(request):
    with unguarded_again():
        if request.param == "ours":
            guards.install()
        yield request.param == "ours"


class Calls:
    def __init__(self, server, client):
        self.server, self._client, self._writers = server, client, []

    async def open(self, name=NAME):
        _, reader, writer = await self._client.call_binary_stream_handler(self.server.peer_id, name)
        self._writers.append(writer)
        return reader, writer

    async def speak(self):
        """Open one, and send a message, if it was not closed."""
        _, writer = await self.open()
        with contextlib.suppress(OSError):
            await P2P.send_protobuf(averaging_pb2.AveragingData(), writer)

    async def end(self):
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        self._writers.clear()
        await asyncio.sleep(QUIET)


@contextlib.asynccontextmanager
async def connected():
    """A peer that serves NAME, with the list of its running calls, and one that calls it."""
    async with asyncio.timeout(PATIENCE):
        server = await P2P.create(host_maddrs=["/ip4/127.0.0.1/tcp/0"], dht_mode="client")
        client = await P2P.create(initial_peers=await server.get_visible_maddrs(), dht_mode="client")
        running, over = [], asyncio.Event()

        async def take(parts, context):
            running.append(context.remote_id)
            async for _part in parts:
                await over.wait()
            yield averaging_pb2.AveragingData()

        await server._add_protobuf_stream_handler(NAME, take, averaging_pb2.AveragingData)
        calls = Calls(server, client)
        try:
            yield calls, running
        finally:
            over.set()
            await calls.end()
            await client.shutdown()
            await server.shutdown()


async def settled(values):
    """The length of a list once it does not grow any more."""
    before = -1
    while before != len(values):
        before = len(values)
        await asyncio.sleep(QUIET)
    return before


def test_a_peer_has_a_limited_number_of_streams(guarded):
    async def count():
        async with connected() as (calls, running):
            for _ in range(MORE):
                await calls.speak()
            open_now = await settled(running)
            await calls.end()  # those that ended make room for others
            await calls.speak()
            return open_now, await settled(running)

    limit = OF_ONE_PEER if guarded else MORE
    assert asyncio.run(count()) == (limit, limit + 1)


def part(size):
    return averaging_pb2.AveragingData(group_id=bytes(size))


def test_few_messages_are_read_before_the_first_one_is_judged(guarded, monkeypatch):
    read, receive = [], P2P.receive_raw_data

    async def counted(reader):
        read.append(len(raw := await receive(reader)))
        return raw

    monkeypatch.setattr(P2P, "receive_raw_data", staticmethod(counted))

    async def count():
        async with connected() as (calls, _running):
            _, writer = await calls.open()
            with contextlib.suppress(TimeoutError):  # it cannot send more
                async with asyncio.timeout(5 * QUIET):
                    for _ in range(100):
                        await P2P.send_protobuf(part(PARTS.longest - 100), writer)
            return await settled(read)

    assert asyncio.run(count()) == (3 if guarded else 7)


@pytest.mark.parametrize(
    ("call", "size", "taken"),
    [
        ("parts", PARTS.longest - 100, True),
        ("parts", PARTS.longest + 1, False),
        ("averager.rpc_join_group", BY_CALL[".rpc_join_group"].longest - 100, True),
        ("averager.rpc_join_group", BY_CALL[".rpc_join_group"].longest + 1, False),
    ],
)
def test_what_a_peer_sends_in_its_own_call_has_a_limit_and_what_it_answers_another(call, size, taken):
    async def asked():
        async with connected() as (calls, _running):
            got = []

            async def take(parts, _context):
                got.extend([len(each.group_id) async for each in parts])
                yield part(2 * PARTS.longest)

            await calls.server._add_protobuf_stream_handler(f"other {call}", take, averaging_pb2.AveragingData)
            reader, writer = await calls.open(f"other {call}")
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await P2P.send_protobuf(part(size), writer)
                await P2P.send_protobuf(P2P.END_OF_STREAM, writer)
                answer, _ = await P2P.receive_protobuf(averaging_pb2.AveragingData, reader)
                return got, len(answer.group_id)
            return got, 0

    with unguarded_again():
        guards.install()
        assert asyncio.run(asked()) == (([size], 2 * PARTS.longest) if taken else ([], 0))


def test_a_call_that_ends_while_more_is_sent_gives_its_place_back(guarded):
    async def opened():
        async with connected() as (calls, _running):
            ended, another = [], asyncio.Event()

            async def take_one(parts, _context):
                await anext(parts)
                await asyncio.sleep(0.3)  # until as many messages are there as are read ahead
                ended.append(True)
                another.set()
                yield averaging_pb2.AveragingData()

            await calls.server._add_protobuf_stream_handler("one", take_one, averaging_pb2.AveragingData)
            for _ in range(OF_ONE_PEER + 1):
                _, writer = await calls.open("one")
                with contextlib.suppress(OSError):
                    for _ in range(6 + 2 * PREFETCHED):
                        await P2P.send_protobuf(part(10), writer)
            await asyncio.sleep(3 * streams.END_SECONDS)
            before = len(ended)
            another.clear()
            _, writer = await calls.open("one")
            await P2P.send_protobuf(part(10), writer)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(another.wait(), PATIENCE / 2)
            return before, await settled(ended)

    before, after = asyncio.run(opened())
    assert after == before + 1


@contextlib.asynccontextmanager
async def answering():
    """A function that calls a peer, which answers at once: the stream, of which the answer was read."""
    async with connected() as (calls, _running):

        async def answer(parts, _context):
            await anext(parts)
            yield part(10)

        async def call():
            reader, writer = await calls.open("answer")
            await P2P.send_protobuf(part(10), writer)
            await P2P.receive_protobuf(averaging_pb2.AveragingData, reader)
            return reader, writer

        await calls.server._add_protobuf_stream_handler("answer", answer, averaging_pb2.AveragingData)
        yield call


def test_a_stream_is_not_closed_before_its_caller_could_take_the_answer(guarded):
    async def closed():
        async with answering() as call:
            try:
                reader, _writer = await call()
            except asyncio.IncompleteReadError:  # closed so early that the answer was lost
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(streams.END_SECONDS / 2):
                    await reader.read()
                    return True
            await reader.read()  # in the end it is closed
            return False

    assert asyncio.run(closed()) is not guarded


def test_a_caller_that_closes_its_stream_gives_its_place_back_at_once(monkeypatch):
    # a place that is given back only then is missing until the test fails
    monkeypatch.setattr(streams, "END_SECONDS", 600.0)

    async def called():
        async with answering() as call:
            for _ in range(3 * OF_ONE_PEER):
                _, writer = await call()
                writer.close()
                await writer.wait_closed()

    with unguarded_again():
        guards.install()
        asyncio.run(called())


def test_who_calls_is_known_to_what_serves_the_call():
    async def known():
        async with connected() as (calls, _running):
            seen = []

            async def answer(parts, context):
                await anext(parts)
                seen.append((streams.caller.get(), context.remote_id))
                yield part(10)

            await calls.server._add_protobuf_stream_handler("who", answer, averaging_pb2.AveragingData)
            reader, writer = await calls.open("who")
            await P2P.send_protobuf(part(10), writer)
            await P2P.receive_protobuf(averaging_pb2.AveragingData, reader)
            return seen

    with unguarded_again():
        guards.install()
        [(caller, remote)] = asyncio.run(known())
    assert caller == remote
    assert streams.caller.get() is None


def test_a_stream_that_says_nothing_ends(monkeypatch):
    monkeypatch.setattr(streams, "FIRST_SECONDS", 0.5)

    async def silent():
        async with connected() as (calls, running):
            reader, _writer = await calls.open()
            await reader.read()  # to its end
            return running

    with unguarded_again():
        guards.install()
        assert asyncio.run(silent()) == []


class Strangers:
    """Streams of one call with two places for strangers, all open until `over`."""

    def __init__(self):
        self.limits, self.served, self.over, self.calls = Limits(), [], asyncio.Event(), []
        self._news = asyncio.Event()
        self._handle = self.limits.limited(self._serve, Bounds(longest=1, strangers=2))

    async def _serve(self, stream, _reader, _writer):
        self.served.append(stream.peer_id)
        self._news.set()
        await self.over.wait()

    async def until(self, peer):
        while peer not in self.served:
            self._news.clear()
            await self._news.wait()

    def open(self, *peers):
        writer = SimpleNamespace(close=lambda: None)
        self.calls += [asyncio.create_task(self._handle(SimpleNamespace(peer_id=peer), None, writer)) for peer in peers]

    async def end(self):
        self.over.set()
        await asyncio.gather(*self.calls)
        return self.served


def test_strangers_together_have_a_limit_that_keeps_no_groupmate_out_and_that_groupmates_do_not_fill():
    mates = [f"groupmate {number}" for number in range(5)]

    async def all_open():
        made = Strangers()
        made.limits.is_groupmate = lambda peer: peer.startswith("groupmate")
        made.open(*mates, "first", "second", "third", "groupmate 5")
        await asyncio.sleep(streams.PLACE_SECONDS + 1.0)
        made.open("fourth")
        return await made.end()

    assert asyncio.run(all_open()) == [*mates, "first", "second", "groupmate 5", "fourth"]


def test_a_groupmate_that_is_early_waits_for_its_place_and_keeps_no_strangers_one():
    async def all_open():
        made, group = Strangers(), set()
        made.limits.is_groupmate = group.__contains__
        made.open("a", "b", "c")
        await asyncio.sleep(0.1)
        assert made.served == ["a", "b"]
        group.update(["a", "c"])  # the group is known now
        await made.until("c")
        made.open("d")
        await made.until("d")
        made.open("e")
        await asyncio.sleep(0.1)
        assert made.served == ["a", "b", "c", "d"]
        return await made.end()

    assert asyncio.run(all_open()) == ["a", "b", "c", "d", "e"]
