"""A real worker of two ranks on the processor trains with another peer; one of its ranks is killed, or hangs."""

import signal
import sys
from pathlib import Path

import psutil
import pytest

from english import in_english
from families import lives
from ranks_of_workers import EPOCH_SECONDS, assert_accounted, is_a, later, paused, ranks_of, reaction, trained_on
from skep.core.session.messages import (
    ContributionConfirmed,
    SetShare,
    StopTraining,
    WorkerFailed,
    WorkerJoined,
    WorkerNoticed,
    WorkerProgress,
)
from worker_pipes import PipedWorker

COUNTING = (sys.executable, str(Path(__file__).parents[1] / "counting_worker.py"))
# seconds are measured: beside three other tests they are those of the other tests
pytestmark = pytest.mark.alone

TRAINED_ON_SECONDS = 20.0


@pytest.fixture
def start(data, seeds):
    started = []

    def start(**options):
        started.append(PipedWorker(*data, command=COUNTING).start(seeds, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def is_limited(reports):
    """Whether the second rank computes for less than half as long as the first."""
    return all(each.devices[1].busy < 0.5 * each.devices[0].busy for each in reports)


@pytest.mark.timeout(900)
def test_a_worker_of_two_ranks_is_confirmed_and_all_its_sockets_listen_on_loopback_only(start):
    worker = start(device="cpu*2", threads=2, id="run-ranks")
    start(id="run-ranks")
    joined = worker.wait_for(is_a(WorkerJoined), EPOCH_SECONDS)
    assert (joined.device, [each.id for each in joined.devices], joined.in_step) == ("CPU", ["cpu:0", "cpu:1"], False)
    assert worker.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS).samples
    processes = [psutil.Process(worker.process.pid), ranks_of(worker)[0]]
    listening = [c.laddr.ip for each in processes for c in each.net_connections() if c.status == psutil.CONN_LISTEN]
    assert listening
    assert set(listening) == {"127.0.0.1"}
    assert reaction(worker) < 1.0
    assert_accounted(worker)
    worker.tell(SetShare(1.0, ceilings={"cpu:1": 0.3}))
    worker.wait_for(lambda _: is_limited(worker.all(WorkerProgress)[-3:]), EPOCH_SECONDS)
    paused(worker)
    before = [sum(each.cpu_times()[:2]) for each in processes]
    later(worker, WorkerProgress)
    assert sum(ranks_of(worker)[0].cpu_times()[:2]) - before[1] < 0.2
    worker.look()
    worker.tell(StopTraining())
    worker.wait_gone()
    assert not worker.left()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_costs_its_samples_and_no_others(start, how):
    run = f"run-lost-{how.name.lower()}"
    worker = start(device="cpu*2", threads=2, id=run)
    start(id=run)
    worker.wait_for(is_a(WorkerJoined), EPOCH_SECONDS)
    worker.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS)
    rank = ranks_of(worker)[0]
    rank.send_signal(how)
    assert trained_on(worker, TRAINED_ON_SECONDS) < TRAINED_ON_SECONDS
    notice = worker.wait_for(is_a(WorkerNoticed))
    assert in_english(notice.problem.title) == "CPU stopped training: its process ended or does not answer."
    assert not worker.all(WorkerFailed)
    assert not lives(rank)
    confirmed = len(worker.all(ContributionConfirmed))
    worker.wait_for(lambda _: len(worker.all(ContributionConfirmed)) > confirmed + 1, EPOCH_SECONDS)
    paused(worker)
    assert_accounted(worker)
    assert [each.id for each in worker.all(WorkerProgress)[-1].devices] == ["cpu:0"]
    worker.look()
    worker.tell(StopTraining())
    worker.wait_gone()
    assert not worker.left()
