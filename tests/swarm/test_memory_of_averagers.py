"""Private memory of an averager's process after rounds, and after it loaded a state: stock's, and ours."""

import gc
import os
import sys
import time

import hivemind
import psutil
import pytest
import torch
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager, dump_optimizer_state

from skep.worker.swarm.averaging.averagers import CheckedGradientAverager, CheckedStateAverager
from skep.worker.swarm.global_rounds import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import Participant, run_of
from swarm_peers import manifest_of, run_round

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told to give memory back")
MEBI = 1 << 20
SIZE = 32
"""MiB of all parameters, in tensors of 2 MiB."""
TENSORS, VALUES = SIZE // 2, MEBI // 2
SECONDS, WATCH_SECONDS = 30, 1.0


@pytest.fixture(autouse=True)
def frozen():
    """As in the worker: otherwise garbage collection in a forked process copies the memory of all imported modules."""
    gc.freeze()
    yield
    gc.unfreeze()


def parameters(value):
    made = [torch.nn.Parameter(torch.full((VALUES,), float(value))) for _ in range(TENSORS)]
    for parameter in made:
        parameter.grad = torch.full((VALUES,), float(value))
    return made


class Held:
    """Memory of an averager's process, beyond what it had at the time of `__init__`; `kind` as psutil names it.

    "uss" leaves out the averaged tensors, which the processes share. "rss" leaves out that inherited memory becomes
    private when the parent changes it.
    """

    def __init__(self, averager, kind):
        self._process, self._kind = psutil.Process(averager.pid), kind
        self._before = self._taken()

    def _taken(self):
        return getattr(self._process.memory_full_info(), self._kind)

    def least(self, *, within, enough=0.0):
        """The minimum during `within` seconds in MiB, or the first value below `enough`.

        A result is reported before all memory is returned, and on a busy computer much earlier.
        """
        deadline, least = time.monotonic() + within, float("inf")
        while time.monotonic() < deadline and least >= enough:
            least = min(least, (self._taken() - self._before) / MEBI)
            time.sleep(0.05)  # each measurement slows the measured process
        return least


@pytest.fixture
def held_after_rounds(make_dhts, averagers):
    """Measures the memory of an averager after two rounds with another."""

    def measure(kind):
        for value, dht in enumerate(make_dhts(2)):
            usual = {"min_matchmaking_time": 1.0, "request_timeout": 0.5, "reuse_grad_buffers": True}
            averagers.append(kind(parameters(value), dht=dht, prefix="rounds", start=True, **usual))
            averagers[-1].wait_until_ready(SECONDS)
        held = Held(averagers[0], "uss")
        for _ in range(2):
            for each in averagers:
                each.accumulate_grads_(1)
            assert [len(found) for found in run_round(*averagers)] == [2, 2]
        return held

    return measure


@on_linux
def test_stock_keeps_what_its_rounds_took(held_after_rounds):
    assert held_after_rounds(GradientAverager).least(within=WATCH_SECONDS) > SIZE


@on_linux
def test_ours_gives_it_back(held_after_rounds):
    assert held_after_rounds(CheckedGradientAverager).least(within=SECONDS, enough=SIZE / 2) < SIZE / 2


@pytest.fixture
def held_by_a_newcomer(make_dhts, averagers):
    """Measures the memory of an averager after it loaded the state of another."""

    def measure(kind, load):
        for value, dht in enumerate(make_dhts(2)):
            usual = {"optimizer": torch.optim.Adam, "reuse_tensors": True}  # so that it keeps none of our tensors
            averagers.append(kind(dht=dht, prefix="states", start=True, params=parameters(value), **usual))
            averagers[-1].wait_until_ready(SECONDS)
        newcomer = averagers[1]
        held = Held(newcomer, "rss")
        deadline = time.monotonic() + SECONDS
        while newcomer.main_parameters[0][0].item() != 0.0:  # until the other is known in the swarm
            assert time.monotonic() < deadline
            load(newcomer)
        shared = [each.is_shared() for each in dump_optimizer_state(newcomer.optimizer)[1]]
        assert len(shared) == 3 * TENSORS
        return held, shared

    return measure


def stock_load(newcomer):
    newcomer.load_state_from_peers(timeout=SECONDS)


def our_load(newcomer):
    newcomer.load_checked(0)


@on_linux
def test_stock_keeps_what_a_state_took(held_by_a_newcomer):
    held, _ = held_by_a_newcomer(TrainingStateAverager, stock_load)
    assert held.least(within=WATCH_SECONDS) > SIZE


@on_linux
def test_ours_keeps_nothing_of_a_state(held_by_a_newcomer):
    held, _ = held_by_a_newcomer(CheckedStateAverager, our_load)
    assert held.least(within=SECONDS, enough=SIZE / 2) < SIZE / 2


@on_linux
@pytest.mark.parametrize(
    ("kind", "load", "stays"),
    [(TrainingStateAverager, stock_load, True), (CheckedStateAverager, our_load, False)],
    ids=["stock", "ours"],
)
def test_statistics_that_were_loaded_stay_in_shared_memory_with_stock_and_not_with_ours(
    held_by_a_newcomer, kind, load, stays
):
    _, shared = held_by_a_newcomer(kind, load)
    assert set(shared) == {stays}


def stock_optimizer(dht, trained):
    return hivemind.Optimizer(
        dht=dht,
        run_id="stock",
        target_batch_size=64,
        batch_size_per_step=8,
        params=trained,
        optimizer=torch.optim.AdamW,
        offload_optimizer=True,
        delay_optimizer_step=True,
        reuse_grad_buffers=True,
    )


def our_optimizer(dht, trained):
    adam = {"name": "adamw", "learning_rate": 0.1, "betas": [0.9, 0.99], "weight_decay": 0, "clip_norm": None}
    delays = {"sync__delay_optimizer_step": True, "sync__delay_state_averaging": True}
    manifest = manifest_of("ours", 64, **delays, sync__offload_optimizer=True, optimizer=adam)
    return GlobalRounds(Participant(run_of(manifest), dht, trained, 8, Rounds("ours", lambda _message: None)))


@on_linux
@pytest.mark.parametrize(("make", "left"), [(stock_optimizer, True), (our_optimizer, False)])
def test_parameters_that_change_are_left_in_stocks_averagers_as_they_were(make_dhts, averagers, make, left):
    (dht,) = make_dhts(1)
    trained = parameters(1)
    optimizer = make(dht, trained)
    averagers += [optimizer.state_averager, optimizer.grad_averager]
    for averager in averagers:
        averager.wait_until_ready(SECONDS)
    family = [psutil.Process(pid) for pid in (os.getpid(), *(averager.pid for averager in averagers))]

    def taken():
        # of pages that the forks of other tests share too, each process has a part that changes as those end
        return sum(process.memory_full_info().uss for process in family) / MEBI

    before = taken()
    with torch.no_grad():
        for parameter in trained:
            parameter.add_(1.0)
    grown = taken() - before
    optimizer.tracker.shutdown(2.0)
    assert grown > 0.8 * SIZE if left else grown < 0.3 * SIZE
    with optimizer.state_averager.get_tensors() as averaged:  # averaging still has its tensors
        assert [float(tensor.mean()) for tensor in averaged] == pytest.approx([1.0] * TENSORS, rel=1e-3)
