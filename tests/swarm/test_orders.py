"""A real worker in a swarm follows its orders, measured from outside: priorities, pauses, memory, presence."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from skep.core.policy.allowance import GpuMemory
from skep.core.session.messages import SetShare, StopTraining, WorkerJoined, WorkerMemory, WorkerPaused, WorkerProgress
from skep.host.practice.swarm import PracticeFolder, seed
from skep.worker.process.processes import SESSION_NICE
from worker_pipes import PATIENCE, PipedWorker, cut_shards

REACTION_SECONDS = 0.1
"""Beyond the current micro-batch; in a test, other processes slow the worker."""
BUSY_FACTOR = 10


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    index = cut_shards(folder)
    with seed(PracticeFolder(tmp_path_factory.mktemp("seed")), 0) as addresses:
        made = PipedWorker(folder, index).start(addresses, sync__target_batch_size=1_000_000)
        made.wait_for(trains_more(made))
        yield made
        made.tell(StopTraining())
        made.wait_gone()


def trains_more(worker):
    """A condition that is true for progress beyond the samples trained until now."""
    position = max((message.position for message in worker.all(WorkerProgress)), default=0)
    return lambda message: isinstance(message, WorkerProgress) and message.position > position


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")
def test_training_has_the_lowest_priority_and_the_network_a_normal_one(worker):
    process = psutil.Process(worker.process.pid)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19  # the main thread, which trains
    threads = [os.getpriority(os.PRIO_PROCESS, thread.id) for thread in process.threads()]
    assert own in threads  # the threads that receive from the engine and the network
    children = process.children(recursive=True)
    assert "p2pd" in {child.name() for child in children}
    assert len(children) >= 4  # the processes of the DHT and of two averagers are among them
    for child in children:
        assert {os.getpriority(os.PRIO_PROCESS, thread.id) for thread in child.threads()} == {own}, child


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel weighs no sessions")
def test_training_stands_back_behind_other_sessions_while_somebody_is_there_and_the_network_does_not(worker):
    def session_nice(pid):
        return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])

    children = psutil.Process(worker.process.pid).children(recursive=True)
    for present, nice in ((True, SESSION_NICE), (False, 0)):
        worker.tell(SetShare(1.0, present=present))
        worker.wait_for(lambda _message, nice=nice: session_nice(worker.process.pid) == nice)
        assert [session_nice(child.pid) for child in children] == [0] * len(children)


@pytest.mark.alone
def test_a_pause_is_obeyed_after_the_micro_batch_in_hand(worker):
    for _ in range(5):
        before = len(worker.all(WorkerPaused))
        worker.tell(SetShare(0.0, present=True))
        worker.wait_for(lambda _message, seen=before: len(worker.all(WorkerPaused)) > seen)
        worker.tell(SetShare(1.0, present=True))
        worker.wait_for(trains_more(worker))
    reactions = [told for told in worker.all(WorkerPaused) if told.share == 0.0]
    assert len(reactions) == 5
    assert {told.behind for told in reactions} <= {"", "state"}
    assert min(told.reaction_seconds for told in reactions) <= REACTION_SECONDS
    assert sorted(told.reaction_seconds for told in reactions)[2] <= BUSY_FACTOR * REACTION_SECONDS


def positions(worker, count):
    """The positions in its next reports, except the first, which may be older than the order."""
    seen = len(worker.all(WorkerProgress)) + 1
    worker.wait_for(lambda _message: len(worker.all(WorkerProgress)) >= seen + count)
    return [message.position for message in worker.all(WorkerProgress)[seen : seen + count]]


@pytest.mark.parametrize("memory", [GpuMemory.RELEASE, GpuMemory.SHRINK])
def test_memory_is_given_back_and_acknowledged_and_training_goes_on(worker, memory):
    worker.tell(SetShare(1.0, present=True, memory=memory))
    told = worker.wait_for(lambda message: isinstance(message, WorkerMemory) and message.memory is memory)
    assert told.reaction_seconds <= PATIENCE
    if memory is GpuMemory.RELEASE:
        first, second = positions(worker, 2)
        assert first == second
    before = len(worker.all(WorkerMemory))
    worker.tell(SetShare(1.0, present=False))
    worker.wait_for(lambda _message: len(worker.all(WorkerMemory)) > before)
    assert worker.all(WorkerMemory)[-1].memory is GpuMemory.KEEP
    worker.wait_for(trains_more(worker))


def test_it_says_whether_a_sample_is_heavy(worker):
    assert not worker.all(WorkerJoined)[0].heavy
    assert not worker.all(WorkerProgress)[-1].heavy
