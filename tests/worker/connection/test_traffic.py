"""Bytes are counted and frame sizes limited in the two functions that carry all of hivemind's streams; stock takes any."""

import asyncio
import contextlib
import io
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hivemind.p2p import P2P

from english import in_english
from fakes import make_index
from skep.core.session.messages import SetTraffic, WorkerOptions
from skep.core.traffic import Caps
from skep.worker.connection import guards
from skep.worker.connection.network import ByteCounters, watch_streams
from skep.worker.connection.rates import Rates
from skep.worker.main import Volunteer
from skep.worker.process.link import Link
from unguarded import unguarded_again

HEADER = P2P.HEADER_LEN
LIMIT = guards.LONGEST_FRAME


@pytest.fixture
def stock_again():
    with unguarded_again():
        yield


@pytest.fixture
def unlimited():
    return Rates(Caps())


@pytest.fixture
def watched(stock_again, unlimited):
    made = ByteCounters()
    watch_streams(made, unlimited)
    guards.install()  # as each start of a DHT does
    return made


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
            with contextlib.suppress(ConnectionError):  # the receiver has refused to read on
                for message in messages:
                    await P2P.send_raw_data(message, writer)
            got = [await arrived.get() for _ in messages]
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        return got

    return asyncio.run(main())


def test_what_is_streamed_arrives_whole_and_is_counted_both_ways(watched):
    messages = [b"", b"x", bytes(300_000)]
    assert send(*messages) == messages
    expected = sum(len(message) + HEADER for message in messages)
    assert (watched.sent.value, watched.received.value) == (expected, expected)


@pytest.fixture(params=["a worker", "a seed"])
def guarded(request):
    """Only a worker counts its traffic."""
    request.getfixturevalue("watched" if request.param == "a worker" else "stock_again")
    guards.install()


def test_a_frame_at_the_limit_passes_and_one_over_it_is_refused_unread(guarded):
    assert send(bytes(LIMIT)) == [bytes(LIMIT)]
    (refused,) = send(bytes(LIMIT + 1))
    assert isinstance(refused, ConnectionError)
    assert f"{LIMIT + 1} bytes, over the limit of {LIMIT}" in in_english(refused)


def test_stock_takes_frames_of_any_length(monkeypatch):
    monkeypatch.setattr(P2P, "receive_raw_data", staticmethod(guards._stock_receive))
    assert send(bytes(LIMIT + 1)) == [bytes(LIMIT + 1)]


def test_what_was_refused_is_not_counted(watched):
    send(bytes(LIMIT + 1))
    assert watched.received.value == 0


def test_forked_processes_count_into_the_same_numbers(watched):
    context = multiprocessing.get_context("fork")
    child = context.Process(target=send, args=(b"12345678",))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert watched.sent.value == watched.received.value == 8 + HEADER


RATE = 500_000
SECONDS = 10.5
FRAME = bytes(200_000)


def stream_for(seconds):
    """Frames from one stream after the other, as many as pass."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        send(FRAME)


@pytest.mark.alone
@pytest.mark.parametrize("direction", ["up", "down"])
def test_all_streams_of_all_processes_together_keep_the_limit(watched, unlimited, direction):
    getattr(unlimited, direction).rate = RATE
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=stream_for, args=(SECONDS + 20,)) for _ in range(2)]
    for child in children:
        child.start()
    counter = watched.sent if direction == "up" else watched.received
    try:
        deadline = time.monotonic() + 20
        while not counter.value:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        begun, before = time.monotonic(), counter.value
        time.sleep(SECONDS)
        rate = (counter.value - before) / (time.monotonic() - begun)
    finally:
        for child in children:
            child.kill()
            child.join()
    assert rate == pytest.approx(RATE, rel=0.1)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_what_is_streamed_under_a_limit_arrives_whole(watched, unlimited, direction):
    getattr(unlimited, direction).rate = 2_000_000
    messages = [b"", b"x", bytes(range(256)) * 1200]
    assert send(*messages) == messages
    assert watched.sent.value == watched.received.value == sum(len(each) + HEADER for each in messages)


def test_a_limit_that_is_lifted_lets_go_at_once(watched, unlimited):
    unlimited.up.rate = 1000.0  # a minute for this message

    def lift():
        time.sleep(1.0)
        unlimited.use(Caps())

    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        pool.submit(lift)
        assert send(bytes(60_000)) == [bytes(60_000)]
    assert 0.9 < time.monotonic() - begun < 10


def test_a_frame_over_the_limit_of_size_is_refused_under_a_limit_of_rate_too(watched, unlimited):
    unlimited.down.rate = RATE
    (refused,) = send(bytes(LIMIT + 1))
    assert isinstance(refused, ConnectionError)


def test_a_worker_begins_with_the_limits_of_its_options_and_takes_others():
    volunteer = Volunteer(WorkerOptions("", make_index(), upload=5.0, download=6.0), Link(io.BytesIO(), -1))
    rates = volunteer._rates
    assert (rates.up.rate, rates.down.rate) == (5.0, 6.0)
    volunteer._hear(SetTraffic(7.0, 0.0))
    assert (rates.up.rate, rates.down.rate) == (7.0, 0.0)
