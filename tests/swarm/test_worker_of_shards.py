"""A real worker whose model is spread over four ranks trains with another peer; one of its ranks is killed, or hangs."""

import signal
import sys
from pathlib import Path

import pytest

import counting_worker
from english import in_english
from families import lives
from ranks_of_workers import EPOCH_SECONDS, assert_accounted, is_a, later, paused, ranks_of, reaction, trained_on
from skep.core.policy.allowance import GpuMemory
from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    SetShare,
    StopTraining,
    WorkerEvaluated,
    WorkerFailed,
    WorkerJoined,
    WorkerMemory,
    WorkerNoticed,
    WorkerProgress,
)
from worker_pipes import PipedWorker

# seconds are measured: beside three other tests they are those of the other tests
pytestmark = pytest.mark.alone

TRAINED_ON_SECONDS = 20.0
NEEDED_GB = 2
"""What a device has to have for a copy of the model, by the manifest; four that share it have to have a quarter."""
SMALL_CARDS = [sys.executable, str(Path(counting_worker.__file__)), "600000000"]


@pytest.fixture
def start(data, seeds):
    started = []

    def start(*command, **options):
        made = PipedWorker(*data, command=command) if command else PipedWorker(*data)
        started.append(made.start(seeds, needs__vram_gb=NEEDED_GB, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.mark.timeout(900)
def test_a_worker_of_shards_is_confirmed_pauses_and_gives_memory_back(start):
    worker = start(*SMALL_CARDS, device="cpu*4", threads=4, id="run-shards")
    start(id="run-shards")
    joined = worker.wait_for(is_a(WorkerJoined), EPOCH_SECONDS)
    assert (joined.device, len(joined.devices), joined.in_step) == ("CPU", 4, True)
    assert worker.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS).samples
    assert worker.wait_for(is_a(WorkerEvaluated), EPOCH_SECONDS).evaluation.loss > 0
    assert reaction(worker) < 1.0
    worker.tell(SetShare(0.0, memory=GpuMemory.RELEASE))
    assert worker.wait_for(lambda message: is_a(WorkerMemory)(message) and message.memory is GpuMemory.RELEASE)
    ranks = ranks_of(worker, 3)
    later(worker, WorkerProgress)  # giving memory back takes the ranks some time of the processor
    before = [sum(each.cpu_times()[:2]) for each in ranks]
    later(worker, WorkerProgress)
    assert sum(sum(each.cpu_times()[:2]) for each in ranks) - sum(before) < 0.3
    worker.tell(SetShare(1.0))
    trained_on(worker, TRAINED_ON_SECONDS)
    paused(worker)
    assert_accounted(worker)
    worker.look()
    worker.tell(StopTraining())
    worker.wait_gone()
    assert not worker.left()
    assert not worker.all(WorkerFailed, WorkerNoticed)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_three_of_four_ranks_go_on_and_only_what_the_shards_had_is_lost(start, how):
    run = f"run-shards-{how.name.lower()}"
    worker = start(*SMALL_CARDS, device="cpu*4", threads=4, id=run)
    start(id=run)
    worker.wait_for(is_a(WorkerJoined), EPOCH_SECONDS)
    worker.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS)
    lost = ranks_of(worker, 3)[1]
    lost.send_signal(how)
    assert trained_on(worker, TRAINED_ON_SECONDS) < TRAINED_ON_SECONDS
    notice = worker.wait_for(is_a(WorkerNoticed))
    assert in_english(notice.problem.title) == "CPU stopped training: its process ended or does not answer."
    assert not worker.all(WorkerFailed)
    assert not lives(lost)
    confirmed = len(worker.all(ContributionConfirmed))
    worker.wait_for(lambda _: len(worker.all(ContributionConfirmed)) > confirmed + 1, EPOCH_SECONDS)
    paused(worker)
    assert_accounted(worker)
    assert len(worker.all(WorkerProgress)[-1].devices) == 3
    worker.look()
    worker.tell(StopTraining())
    worker.wait_gone()
    assert not worker.left()
    lost_samples = [each.samples for each in worker.all(ContributionLost) if each.reason.id == "ranks.lost_with_device"]
    assert len(lost_samples) <= 1
    assert sum(lost_samples) <= worker.all(WorkerJoined)[0].step_batch
