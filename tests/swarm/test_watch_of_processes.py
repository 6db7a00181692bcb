"""A real worker in a real swarm loses one of its processes, or one of them hangs: it says so, and ends."""

import asyncio
import faulthandler
import multiprocessing
import os
import queue
import signal
import threading
import time

import psutil
import pytest
import torch
from hivemind.utils import MPFuture

from english import in_english
from skep.core.session.messages import WorkerFailed, WorkerProgress
from skep.host.practice.swarm import PracticeFolder, seed
from skep.worker.connection import futures
from skep.worker.connection.watch import LOOK_SECONDS, Watch, parts_of
from skep.worker.process import stacks
from skep.worker.swarm.tracker import LiveProgressTracker
from swarm_peers import STEP_BATCH, manifest_of
from worker_pipes import PipedWorker, cut_shards

START_SECONDS, DEATH_SECONDS, HANG_SECONDS, END_SECONDS = 240.0, 10.0, 90.0, 20.0
"""On a busy computer."""
DHT, P2PD, STATE, GRADIENTS = (
    "The process that looks up",
    "p2pd",
    "The process that averages the",
    "that averages gradi",
)
STOCK_RUN = LiveProgressTracker.run


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """Starts workers in one swarm, one after the other."""
    folder, started = tmp_path_factory.mktemp("shards"), []
    with seed(PracticeFolder(tmp_path_factory.mktemp("seed")), 0) as addresses:
        index = cut_shards(folder)

        def start():
            started.append(PipedWorker(folder, index).start(addresses, sync__target_batch_size=1_000_000))
            return started[-1]

        yield start
        for each in started:
            each.close()


def process_of(worker, part):
    """The process of a training worker: the DHT's starts p2pd; hivemind starts the averager of the state first."""
    p2pd = next(each for each in worker.children(recursive=True) if "p2pd" in each.name())
    dht = p2pd.parent()
    averagers = sorted((each for each in worker.children() if each != dht), key=psutil.Process.create_time)
    return dict(zip((DHT, P2PD, STATE, GRADIENTS), (dht, p2pd, *averagers), strict=True))[part]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("part", "what", "within"),
    [
        (P2PD, signal.SIGKILL, DEATH_SECONDS),
        *(pytest.param(part, signal.SIGKILL, DEATH_SECONDS, marks=pytest.mark.long) for part in (DHT, STATE, GRADIENTS)),
        *(pytest.param(part, signal.SIGSTOP, HANG_SECONDS, marks=pytest.mark.long) for part in (DHT, P2PD, STATE, GRADIENTS)),
    ],
)  # fmt: skip
def test_a_worker_that_lost_a_part_says_which_and_ends_with_all_its_processes(worker, part, what, within):
    made = worker()
    made.wait_for(lambda message: isinstance(message, WorkerProgress) and message.samples > 0, START_SECONDS)
    made.look()
    begun = time.monotonic()
    process_of(psutil.Process(made.process.pid), part).send_signal(what)
    failed = made.wait_for(lambda message: isinstance(message, WorkerFailed), within)
    assert part in in_english(failed.problem.title)
    assert failed.retry
    made.wait_gone(END_SECONDS)
    assert time.monotonic() - begun < within + END_SECONDS
    assert made.process.returncode == 1
    assert not made.left()
    assert "(most recent call first)" in made.words()


def run_and_close(tracker):
    """As hivemind's, but closes its event loop. That of tests waits, also at an error, for all that runs in the loop."""
    try:
        STOCK_RUN(tracker)
    finally:
        loop = asyncio.get_event_loop()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()


# that the tracker's thread ends at an error is what is tested
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_tracker_that_ended_at_an_error_is_noticed(swarm, monkeypatch):
    monkeypatch.setattr(LiveProgressTracker, "run", run_and_close)
    with swarm.peers(manifest_of("broken-tracker", STEP_BATCH), [[torch.zeros(4)]]) as (peer,):
        found = queue.Queue()
        watch = Watch(peer.optimizer.parts(), found.put)
        watch.start()
        try:
            with pytest.raises(queue.Empty):
                found.get(timeout=3 * LOOK_SECONDS)
            monkeypatch.setattr(peer.optimizer.tracker, "_parse_swarm_progress_data", {}.__getitem__)
            problem = found.get(timeout=DEATH_SECONDS)
        finally:
            watch.end()
    assert in_english(problem.title) == "The part that follows the swarm's progress ended."


async def hang(_dht, _node):
    """In the DHT's process: nothing else runs there meanwhile."""
    time.sleep(HANG_SECONDS)  # noqa: ASYNC251 - it is to block the loop


def test_a_part_that_hangs_says_where(make_dhts, monkeypatch, capfd):
    monkeypatch.setattr("skep.worker.connection.watch.SILENT_SECONDS", 10.0)
    monkeypatch.setattr("skep.worker.connection.watch.ASK_SECONDS", 0.5)
    stacks.write_on_request()
    try:
        (dht,) = make_dhts(1)
        found = queue.Queue()
        watch = Watch(parts_of(dht), found.put, stacks.request)
        watch.start()
        with pytest.raises(queue.Empty):
            found.get(timeout=3 * LOOK_SECONDS)
        assert "(most recent call first)" not in capfd.readouterr().err
        dht.run_coroutine(hang, return_future=True)
        problem = found.get(timeout=10.0 + DEATH_SECONDS)
        watch.end()
    finally:
        faulthandler.unregister(signal.SIGUSR1)
    # p2pd's question goes through the DHT's process
    assert any(part in in_english(problem.title) for part in (DHT, P2PD))
    assert "test_watch_of_processes.py" in (said := capfd.readouterr().err)
    assert "in hang" in said


@pytest.fixture
def stopped_dht(make_dhts):
    (dht,) = make_dhts(1)
    os.kill(dht.pid, signal.SIGSTOP)
    return dht


@pytest.fixture
def bounded():
    stock = MPFuture.result, MPFuture.set_exception
    futures.install(0.5)
    yield
    MPFuture.result, MPFuture.set_exception = stock


def test_stock_waits_for_a_stopped_dht_without_end(stopped_dht):
    call = threading.Thread(target=stopped_dht.get, args=["a key"], daemon=True)
    call.start()
    call.join(2.0)
    assert call.is_alive()


def test_a_bounded_wait_for_a_stopped_dht_ends(stopped_dht, bounded):
    with pytest.raises(TimeoutError):
        stopped_dht.get("a key")
    with pytest.raises(TimeoutError):
        stopped_dht.get_visible_maddrs()


def waits_for(answer, told):
    """Waits 3 s at most for what comes through the pipe `answer`."""
    futures.install(3.0)
    future = MPFuture()
    threading.Thread(target=lambda: future.set_result(answer.recv()), daemon=True).start()
    told.send("waits")
    try:
        told.send(future.result())
    except TimeoutError as error:
        told.send(repr(error))


def test_a_computer_that_sleeps_during_a_bounded_wait_goes_on_with_it():
    context = multiprocessing.get_context("fork")
    (answer, answering), (hearing, told) = context.Pipe(duplex=False), context.Pipe(duplex=False)
    waiting = context.Process(target=waits_for, args=(answer, told))
    waiting.start()
    try:
        assert hearing.recv() == "waits"
        os.kill(waiting.pid, signal.SIGSTOP)
        time.sleep(4.0)  # longer than the limit of the wait: the duration of the stop is what is tested
        os.kill(waiting.pid, signal.SIGCONT)
        time.sleep(0.2)  # lets the process run before the answer: it must not have given up
        answering.send("answered")
        assert hearing.poll(END_SECONDS)
        assert hearing.recv() == "answered"
    finally:
        waiting.kill()
        waiting.join()
