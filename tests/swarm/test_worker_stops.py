"""A real worker in a real swarm is stopped at every stage: it ends in two seconds, and settles every contribution."""

import socket
import time
from itertools import product

import pytest

import forked_peers
from english import in_english
from manifests import PEER, raw
from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    ContributionPending,
    FinishTraining,
    SetShare,
    StopTraining,
    WorkerFailed,
    WorkerJoined,
    WorkerPaused,
    WorkerProgress,
    WorkerStage,
)
from skep.core.session.phases import Stage
from skep.recipes.registry import parse_manifest
from skep.worker.swarm.division import DataDivision
from swarm_peers import wait_until
from worker_pipes import TINY, PipedWorker

STOP_SECONDS = 2.0
GOODBYE_SECONDS = 60.0
EPOCH_SECONDS = 240.0
"""For joining, and for an epoch, on a busy computer."""
PEER_ID = PEER.rpartition("/")[2]


@pytest.fixture
def worker(data):
    started = []

    def start(**options):
        started.append(PipedWorker(*data, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def silence():
    """An address that accepts no more connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = []
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(("127.0.0.1", port))
        yield f"/ip4/127.0.0.1/tcp/{port}/p2p/{PEER_ID}"
        for each in waiting:
            each.close()


def stop(worker):
    worker.tell(StopTraining())


def begins(stage):
    return lambda message: isinstance(message, WorkerStage) and message == WorkerStage(stage, 0.0)


def is_a(kind):
    return lambda message: isinstance(message, kind)


def assert_accounted(worker):
    """Each contribution was pending and then settled once."""
    told = worker.all(ContributionPending, ContributionConfirmed, ContributionLost)
    for id_ in {message.id for message in told}:
        kinds = [type(message) for message in told if message.id == id_]
        assert kinds in ([ContributionPending, ContributionConfirmed], [ContributionPending, ContributionLost]), told


STAGES = [Stage.PEERS, Stage.WARM_UP, Stage.STATE]
LATER = [0.0, 0.7]
"""Seconds: immediately, while the stage's processes are being started, and somewhat later."""
USUAL = [(Stage.PEERS, stop, 0.0), (Stage.WARM_UP, PipedWorker.hang_up, 0.7)]
OTHERS = [case for case in product(STAGES, [stop, PipedWorker.hang_up], LATER) if case not in USUAL]


@pytest.mark.parametrize(
    ("stage", "end", "later"), [*USUAL, *(pytest.param(*case, marks=pytest.mark.long) for case in OTHERS)]
)
def test_a_worker_can_be_stopped_at_every_stage_of_joining(worker, seeds, stage, end, later):
    made = worker().start(seeds)
    made.wait_for(begins(stage))
    time.sleep(later)
    made.look()
    end(made)
    assert made.wait_gone() < STOP_SECONDS
    assert not made.left()
    assert not made.remains
    assert not made.all(WorkerFailed)


def test_a_worker_can_be_stopped_while_it_dials_a_silent_seed(worker, silence):
    made = worker().start([silence])
    made.wait_for(begins(Stage.PEERS))
    stop(made)
    assert made.wait_gone() < STOP_SECONDS


@pytest.mark.parametrize("end", [stop, pytest.param(PipedWorker.hang_up, marks=pytest.mark.long)])
def test_a_training_worker_that_is_stopped_reports_what_it_had_as_lost(worker, seeds, end):
    made = worker().start(seeds, sync__target_batch_size=1_000_000)  # an epoch that does not end
    progress = made.wait_for(lambda message: isinstance(message, WorkerProgress) and message.samples > 0)
    made.look()
    end(made)
    assert made.wait_gone() < STOP_SECONDS
    assert not made.left()
    if end is stop:
        assert_accounted(made)
        (lost,) = made.all(ContributionLost)
        assert (lost.id, in_english(lost.reason)) == (progress.contribution, "left before the round")
        assert lost.samples >= progress.samples


@pytest.fixture
def reader(private_sockets, seeds):
    """A DHT node of another peer."""
    made = forked_peers.LastingDHT(initial_peers=list(seeds), start=True, startup_timeout=60)
    yield made
    forked_peers.kill(forked_peers.family(made))  # and not the seed of the other tests
    made.join()


def test_a_worker_tells_the_swarm_which_data_it_has_drawn(worker, seeds, reader):
    made = worker().start(seeds, id="divided", sync__target_batch_size=1_000_000)
    made.wait_for(lambda message: isinstance(message, WorkerProgress) and message.samples > 0)
    manifest = parse_manifest(
        raw(**(TINY | {"id": "divided", "sync__target_batch_size": 1_000_000, "peers": list(seeds)}))
    )
    drawn = DataDivision(reader, manifest)._key
    wait_until(lambda: (found := reader.get(drawn, latest=True)) is not None and len(found.value) == 1)


SHARE = 0.2
"""Of each of two peers, which leaves the processor to other tests for the rest of an epoch."""
LONG = 20_480
"""Samples of an epoch that takes seconds at this share even on a fast computer.

With epochs shorter than a failed round (3 s until a groupmate counts as lost), two peers that are half an epoch apart
never meet: each joins a round after the other has left it."""
STEP_AND_STATE_DELAYED: dict = {}  # as in the example manifest
ALL_DELAYED = {"sync__delay_grad_averaging": True}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("delays", [pytest.param(STEP_AND_STATE_DELAYED, marks=pytest.mark.long), ALL_DELAYED])
def test_two_workers_average_and_one_that_stops_in_a_round_accounts_for_it(worker, seeds, delays):
    run = f"two-workers-{len(delays)}"  # a separate swarm for each case
    first, other = (
        worker().start(seeds, share=SHARE, id=run, sync__target_batch_size=LONG, **delays) for _ in range(2)
    )
    for each in (first, other):
        each.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS)
    seen = len(first.all(ContributionPending))
    deadline = time.monotonic() + EPOCH_SECONDS
    while len(first.all(ContributionPending)) == seen:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    lost_before = len(first.all(ContributionLost))
    stop(first)
    assert first.wait_gone() < STOP_SECONDS
    assert_accounted(first)
    assert {in_english(lost.reason) for lost in first.all(ContributionLost)[lost_before:]} <= {"left before the round"}
    other.tell(SetShare(0.0))
    other.wait_for(lambda message: isinstance(message, WorkerPaused) and message.share == 0.0)
    stop(other)
    assert other.wait_gone() < STOP_SECONDS
    assert_accounted(other)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("delays", [pytest.param(STEP_AND_STATE_DELAYED, marks=pytest.mark.long), ALL_DELAYED])
def test_a_worker_that_finishes_computes_no_more_and_leaves_when_a_round_took_what_it_had(worker, seeds, delays):
    run = f"finishes-{len(delays)}"
    first, other = (
        worker().start(seeds, share=SHARE, id=run, sync__target_batch_size=LONG, **delays) for _ in range(2)
    )
    for each in (first, other):
        each.wait_for(is_a(ContributionConfirmed), EPOCH_SECONDS)
    growing = first.wait_for(
        lambda m: isinstance(m, WorkerProgress) and m.samples and m.contribution not in ids(first, ContributionPending)
    )
    first.look()
    told_before = len(first.all(WorkerProgress))
    first.tell(FinishTraining())
    first.wait_gone(GOODBYE_SECONDS)
    assert not first.left()
    assert_accounted(first)
    assert growing.contribution in ids(first, ContributionPending)
    # a round may fail on a busy computer, but the worker waited for it
    assert "left before the round" not in {in_english(lost.reason) for lost in first.all(ContributionLost)}
    after = [message.position for message in first.all(WorkerProgress)[told_before + 1 :]]
    assert len(set(after)) <= 1, after
    stop(other)
    assert other.wait_gone() < STOP_SECONDS
    assert_accounted(other)


def ids(worker, kind):
    return {message.id for message in worker.all(kind)}


def test_a_worker_alone_finishes_at_once(worker, seeds):
    made = worker().start(seeds, sync__target_batch_size=1_000_000)
    made.wait_for(lambda message: isinstance(message, WorkerProgress) and message.samples > 0)
    made.tell(FinishTraining())
    made.wait_gone(GOODBYE_SECONDS / 2)
    (lost,) = made.all(ContributionLost)
    assert in_english(lost.reason) == "left before the round"


def test_a_worker_that_joins_paused_computes_nothing_until_it_is_resumed(worker, seeds):
    made = worker().start(seeds, id="joins-paused", share=0.0)
    made.wait_for(is_a(WorkerJoined))
    idle = made.wait_for(is_a(WorkerProgress))
    assert (idle.samples, idle.progress.samples_per_second, idle.progress.compute_seconds) == (0, 0.0, 0.0)
    made.tell(SetShare(1.0))
    made.wait_for(lambda message: isinstance(message, WorkerProgress) and message.progress.samples_per_second > 0)
    stop(made)
    assert made.wait_gone() < STOP_SECONDS
    assert_accounted(made)


# a stop leaves a second for it
@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("end", [FinishTraining(), StopTraining()])
def test_a_worker_that_leaves_saves_its_state_and_the_next_one_goes_on_from_it(worker, seeds, tmp_path, end):
    changes = {"snapshots": tmp_path, "id": f"kept-{type(end).__name__.lower()}", "share": SHARE}
    changes["sync__target_batch_size"] = 64
    first = worker().start(seeds, **changes)
    first.wait_for(lambda message: isinstance(message, WorkerProgress) and message.progress.epoch >= 1, EPOCH_SECONDS)
    first.tell(end)
    assert first.wait_gone() < GOODBYE_SECONDS
    (saved,) = tmp_path.glob("*/epoch-*.safetensors")
    second = worker().start(seeds, **changes)
    second.wait_for(is_a(WorkerJoined), EPOCH_SECONDS)
    assert second.all(WorkerJoined)[0].epoch >= int(saved.stem.removeprefix("epoch-")) >= 1
    assert not any(message.detail for message in second.all(WorkerStage))  # nothing was loaded from other peers
