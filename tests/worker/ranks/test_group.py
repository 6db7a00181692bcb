"""Ranks on the processor compute the same as one device, through kills, hangs, overflows and lack of memory.

All ranks are forked before anything is computed: torch's autograd does not work in forks of a process that has used it.
"""

import math
import os
import signal
import threading
import time
from unittest import mock

import psutil
import pytest
import torch

from english import in_english
from forked_ranks import received_over_tcp
from manifests import raw
from skep.core.errors import DeviceError
from skep.core.policy.allowance import GpuMemory
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.process import processes
from skep.worker.ranks import group as group_module
from skep.worker.ranks import orders
from skep.worker.ranks import others as others_module
from skep.worker.ranks import rank as rank_module
from skep.worker.ranks.group import GroupTrainer
from skep.worker.ranks.others import fork
from skep.worker.training.compute_group import ComputeGroup
from skep.worker.training.device import CPU, Threads, TrainingDevice
from skep.worker.training.device_errors import add_gradients, out_of_memory
from skep.worker.training.pace import RequestedLimits
from skep.worker.training.resource_limits import DryRun, MicroBatches, ResourceLimits
from skep.worker.training.trainer import Trainer

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
MANIFEST = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=16))
ROOM = 3
"""Samples that fit into the memory of a rank whose memory is small."""


class SmallMemory(ComputeGroup):
    def compute(self, batch, factor):
        if len(batch) > ROOM:
            raise torch.OutOfMemoryError
        return super().compute(batch, factor)


CARD_LOST = RuntimeError("CUDA error: unspecified launch failure")
IN_SUM = "card lost in a sum"


class LostCard(ComputeGroup):
    """Its card is lost in the second micro-batch."""

    _computed = False

    def compute(self, batch, factor):
        if self._computed:
            raise CARD_LOST
        self._computed = True
        return super().compute(batch, factor)


NOT_THERE = "cuda:99"
"""No computer has this card."""


@pytest.fixture(scope="module", autouse=True)
def forked(request):
    """The ranks besides rank 0 for each test of this module: as many as its parameter `count` says, else one."""
    torch.set_num_threads(1)
    made = {}
    for item in request.session.items:
        if item.module is request.module and "begin" in item.fixturenames:
            count = item.callspec.params.get("count", 2) if hasattr(item, "callspec") else 2
            made[item.nodeid] = _fork(count)
    yield made
    for rank in [rank for others in made.values() for rank in others.ranks]:
        rank.process.kill()
        rank.process.join()


def _fork(count):
    if count == "unfit":
        return fork(["cpu", NOT_THERE], MANIFEST)
    if count == "small":
        with mock.patch.object(rank_module, "ComputeGroup", SmallMemory):
            return fork(["cpu"], MANIFEST)
    if count == "no room":
        with mock.patch.object(rank_module.collectives, "sums", side_effect=torch.OutOfMemoryError):
            return fork(["cpu"], MANIFEST)
    if count == "card lost":
        with mock.patch.object(rank_module, "ComputeGroup", LostCard):
            return fork(["cpu"], MANIFEST)
    if count == IN_SUM:
        with mock.patch.object(rank_module.collectives, "sums", side_effect=CARD_LOST):
            return fork(["cpu"], MANIFEST)
    return fork(["cpu"] * (count - 1), MANIFEST)


@pytest.fixture
def begin(forked, request, tmp_path):
    others = forked[request.node.nodeid]

    def begin(precision="fp32", **options):
        made = GroupTrainer(MANIFEST, TrainingDevice(CPU, "CPU", precision), others, tmp_path, **options)
        made.begin()
        made._slowest = 0.1  # as after a dry run
        return made

    yield begin
    for rank in others.ranks:
        rank.process.kill()


def alone(precision="fp32"):
    return Trainer(MANIFEST, TrainingDevice(CPU, "CPU", precision))


def some_tokens(samples, seed=0):
    torch.manual_seed(seed)
    return open_recipe(MANIFEST.recipe).example(samples)


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


def distance(made, other):
    return float((gradients(made) - gradients(other)).norm() / gradients(other).norm())


def divide(made, *sizes):
    made._division.sizes = lambda _samples, _parts: list(sizes)


def send(made, number, how):
    os.kill(made._others.ranks[number - 1].process.pid, how)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("count", "samples"), [(2, 8), (2, 5), (3, 8)])
def test_several_ranks_give_the_loss_and_the_gradients_of_one(begin, precision, count, samples):
    one, several = alone(precision), begin(precision)
    assert len(several.devices) == count
    batch = some_tokens(samples)
    for scale in (0.5, 0.25):  # the second is added to the first
        value, together = one.add_gradients(batch, scale), several.add_gradients(batch, scale)
        assert together == pytest.approx(value, rel=1e-3)
    several.collect()
    assert distance(several, one) < (1e-5 if precision == "fp32" else 2e-2)
    assert several.lost() == 0
    assert several.gradients_finite()


def test_ranks_send_each_other_nothing_between_two_hand_overs(begin, monkeypatch):
    several, told = begin(), []
    several.add_gradients(some_tokens(8), 1.0)  # after the parameters
    tell = several._others.tell
    monkeypatch.setattr(
        several._others, "tell", lambda order, ranks=None: (told.append(type(order)), tell(order, ranks))
    )
    before = received_over_tcp()
    for seed in range(5):
        several.add_gradients(some_tokens(8, seed), 1.0)
    assert received_over_tcp() == before
    assert set(told) == {orders.Compute, orders.Settle}
    several.collect()
    assert received_over_tcp() >= before + sum(p.grad.nbytes for p in several.parameters)


@pytest.mark.parametrize("sizes", [(1, 7), (7, 1), (0, 8), (8, 0)])
def test_the_mean_is_exact_for_unequal_parts(begin, sizes):
    one, several = alone(), begin()
    divide(several, *sizes)
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert distance(several, one) < 1e-5


def test_a_limited_device_gets_its_part_of_the_samples_and_the_mean_stays_exact(begin):
    one, several = alone(), begin(allowed={"cpu:0": 1.0, "cpu:1": 0.25}.__getitem__)
    assert [each.id for each in several.devices] == ["cpu:0", "cpu:1"]
    for seed in range(5):
        one.add_gradients(some_tokens(4, seed), 1.0)
        several.add_gradients(some_tokens(4, seed), 1.0)
        several._division._speeds = [None, None]  # equal ones, whatever else runs on this computer
    assert several._others.ranks[0].samples == 4
    several.collect()
    assert distance(several, one) < 1e-5


def test_a_device_that_may_compute_nothing_rests_and_says_so(begin):
    several = begin(allowed={"cpu:0": 1.0, "cpu:1": 0.0}.__getitem__)
    several.add_gradients(some_tokens(8), 1.0)
    assert several._others.ranks[0].samples == 0
    assert [each.busy for each in several.devices] == [1.0, 0.0]


def test_ranks_compute_with_the_parameters_of_now(begin):
    one, several = alone(), begin()
    for made in (one, several):
        made.add_gradients(some_tokens(4), 1.0)
        made.collect()
        torch.optim.SGD(made.parameters, lr=0.5).step()
        for parameter in made.parameters:
            parameter.grad = None
        made.add_gradients(some_tokens(8), 1.0)
        made.collect()
    assert distance(several, one) < 1e-5


def test_what_was_collected_is_not_collected_again_and_what_was_forgotten_never(begin):
    one, several = alone(), begin()
    several.add_gradients(some_tokens(4), 1.0)
    several.forget()
    for parameter in several.parameters:
        parameter.grad = None
    for seed in (1, 2):
        one.add_gradients(some_tokens(4, seed), 1.0)
        several.add_gradients(some_tokens(4, seed), 1.0)
        several.collect()
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("sizes", [(7, 1), (1, 7)])
def test_an_overflow_in_one_rank_only_adds_nothing_in_any(begin, sizes):
    """One sample has larger gradients than the mean of seven: a scale exists with which only those overflow."""
    several = begin(precision="fp16")
    divide(several, *sizes)
    batch = some_tokens(8)
    several.add_gradients(batch, 1.0)
    several.collect()
    before, factor = gradients(several).clone(), 2.0**10
    parts = [batch.part(0, sizes[0]), batch.part(sizes[0], 8)]
    while all(several.compute(part, 2 * factor)[1].finite for part in parts):
        factor *= 2
    while sum(several.compute(part, factor)[1].finite for part in parts) == 2:
        factor *= 1.02  # a doubling would let both overflow
    assert sum(several.compute(part, factor)[1].finite for part in parts) == 1
    several.loss_scale.factor = factor
    assert math.isnan(several.add_gradients(batch, 1.0))
    several.collect()
    assert torch.equal(gradients(several), before)
    assert several.loss_scale.factor == factor / 2


def test_a_loss_that_is_not_finite_adds_nothing(begin):
    several = begin()
    with torch.no_grad():
        several.parameters[0][0].fill_(math.nan)
    assert math.isnan(several.add_gradients(some_tokens(8), 1.0))
    several.collect()
    assert not gradients(several).any()


@pytest.mark.parametrize("count", ["small"])
def test_a_micro_batch_too_large_for_one_rank_is_computed_in_halves_and_counted_once(begin, count):
    one, several, too_large = alone(), begin(), []
    several._division.took = lambda *_: None  # parts stay equal, however busy the computer is
    one.add_gradients(some_tokens(12), 1.0)
    loss = add_gradients(several, some_tokens(12), 1.0, too_large.append)
    several.collect()
    assert loss == pytest.approx(one.loss(some_tokens(12)), rel=1e-5)
    assert distance(several, one) < 1e-5
    assert too_large == [12]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_costs_what_only_it_had(begin, count, how):
    told, one = [], alone()
    several = begin(told=told.append)
    sizes = {2: (5, 3), 3: (4, 3, 1)}[count]
    divide(several, *sizes)
    several.add_gradients(some_tokens(8), 1.0)
    process = several._others.ranks[0].process
    send(several, 1, how)
    begun = time.monotonic()
    several.add_gradients(some_tokens(8, seed=1), 1.0)
    several.collect()
    assert time.monotonic() - begun < 20
    assert several.lost() == 3
    assert several.lost() == 0
    assert not process.is_alive()
    assert [in_english(problem.title) for problem in told] == [
        "CPU stopped training: its process ended or does not answer."
    ]
    assert len(several.devices) == count - 1
    for part in (some_tokens(8).part(0, sizes[0]), some_tokens(8).part(5 if count == 2 else 7, 8)):
        if part and not (count == 2 and len(part) == 3):
            one.add_gradients(part, len(part) / 8)
    one.add_gradients(some_tokens(8, seed=1), 1.0)
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("count", ["card lost", IN_SUM])
def test_a_card_that_is_lost_costs_what_only_it_had_and_the_other_goes_on(begin, count):
    told, one = [], alone()
    several = begin(told=told.append)
    divide(several, 5, 3)
    several.add_gradients(some_tokens(8), 1.0)
    if count == IN_SUM:
        several.collect()
    several.add_gradients(some_tokens(8, seed=1), 1.0)
    several.collect()
    assert several.lost() == 3
    assert [in_english(problem.title) for problem in told] == [
        "CPU stopped training: its process ended or does not answer."
    ]
    assert len(several.devices) == 1
    one.add_gradients(some_tokens(8).part(0, 5), 5 / 8)
    one.add_gradients(some_tokens(8, seed=1), 1.0)
    assert distance(several, one) < 1e-5


def test_a_rank_that_is_stopped_is_not_waited_for_as_long_as_a_slow_one(begin):
    one, several = alone(), begin()
    several.add_gradients(
        some_tokens(8), 0.0
    )  # the parameters have been shared, for which ranks are waited for as long as ever
    several.forget()
    several._slowest = 10.0
    send(several, 1, signal.SIGSTOP)
    begun = time.monotonic()
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    assert time.monotonic() - begun < 20
    several.collect()
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("count", [3])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_in_the_sum_costs_what_only_it_had(begin, count, how):
    one, several = alone(), begin()
    divide(several, 4, 3, 1)
    several.add_gradients(some_tokens(8), 1.0)
    send(several, 1, how)
    begun = time.monotonic()
    several.collect()
    assert time.monotonic() - begun < 20
    assert several.lost() == 3
    for part in (some_tokens(8).part(0, 4), some_tokens(8).part(7, 1)):
        one.add_gradients(part, len(part) / 8)
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_while_parameters_are_shared_costs_nothing(begin, how):
    one, several = alone(), begin()
    send(several, 1, how)
    one.add_gradients(some_tokens(8), 1.0)
    begun = time.monotonic()
    several.add_gradients(some_tokens(8), 1.0)
    assert time.monotonic() - begun < 20
    several.collect()
    assert several.lost() == 0
    assert distance(several, one) < 1e-5


def test_a_stop_of_all_processes_loses_no_rank(begin, monkeypatch):
    """As when the computer sleeps or a person stops them: the clock goes on, but nobody was waited for."""
    monkeypatch.setattr(group_module, "ANSWER_SECONDS", 2.0)
    several = begin()
    several.add_gradients(some_tokens(4), 1.0)
    send(several, 1, signal.SIGSTOP)
    waited, real = [], others_module.wait

    def asleep(links, timeout):
        if not waited:
            waited.append(True)
            time.sleep(3.0)
            send(several, 1, signal.SIGCONT)
            return []
        return real(links, timeout)

    monkeypatch.setattr(others_module, "wait", asleep)
    several.add_gradients(some_tokens(4), 1.0)
    assert waited
    assert len(several.devices) == 2


def test_a_group_that_fails_again_and_again_ends_the_worker(begin, monkeypatch):
    several = begin()
    several.add_gradients(some_tokens(4), 1.0)
    monkeypatch.setattr(group_module.collectives, "sums", mock.Mock(side_effect=RuntimeError("a timeout")))
    with pytest.raises(DeviceError):
        several.collect()


@pytest.mark.parametrize("count", ["unfit"])
def test_a_device_that_cannot_begin_is_left_out(begin, count):
    told, one = [], alone()
    several = begin(told=told.append)
    (problem,) = told
    assert in_english(problem.title) == "Training goes on without cuda:99."
    assert in_english(problem.hint).startswith("Training cannot use cuda:99: ")
    assert [each.name for each in several.devices] == ["CPU", "CPU"]
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert distance(several, one) < 1e-5
    assert several.lost() == 0


@pytest.mark.parametrize("count", ["unfit"])
def test_a_device_whose_process_ends_while_it_begins_is_left_out(forked, request, begin, count):
    told, others = [], forked[request.node.nodeid]
    os.kill(others.ranks[0].process.pid, signal.SIGKILL)
    assert others.ranks[0].process.join(10) is None
    several = begin(told=told.append)
    assert [in_english(problem.title) for problem in told] == [
        "cpu could not begin to train.",
        "Training goes on without cuda:99.",
    ]
    assert [each.name for each in several.devices] == ["CPU"]
    assert math.isfinite(several.add_gradients(some_tokens(4), 1.0))


@pytest.mark.parametrize("count", ["no room"])
def test_lack_of_memory_in_a_sum_is_no_lost_rank_and_is_said(begin, count):
    told = []
    several = begin(told=told.append)
    several.add_gradients(some_tokens(4), 1.0)
    with pytest.raises(DeviceError) as caught:
        several.collect()
    assert in_english(caught.value.title) == in_english(out_of_memory("CPU, CPU").title)
    assert not told
    assert len(several.devices) == 2


def test_lack_of_memory_of_rank_0_in_a_sum_costs_nothing_if_there_is_room_then(begin, monkeypatch):
    one, several, real = alone(), begin(), group_module.collectives.sums
    for made in (one, several):
        made.add_gradients(some_tokens(8), 1.0)
    fails = iter([torch.OutOfMemoryError()])

    def sums(tensors):
        if error := next(fails, None):
            raise error
        return real(tensors)

    monkeypatch.setattr(group_module.collectives, "sums", sums)
    several.collect()
    assert several.lost() == 0
    assert distance(several, one) < 1e-5


def test_a_rank_0_that_hangs_in_a_collective_ends_the_worker(begin, monkeypatch):
    alarms, heard, real = [], threading.Event(), group_module.collectives.sums
    several = begin(alarm=lambda problem: (alarms.append(problem), heard.set()))
    several.add_gradients(some_tokens(4), 1.0)
    assert not alarms
    monkeypatch.setattr(group_module, "CONNECT_SECONDS", 0.5 - group_module.COLLECTIVE_SECONDS)  # there is one message
    monkeypatch.setattr(group_module.collectives, "sums", lambda tensors: heard.wait(60) and real(tensors))
    several.collect()
    assert [in_english(each.title) for each in alarms] == ["The devices of this computer could not train together."]


@pytest.mark.parametrize("count", [3])
def test_lack_of_memory_in_a_move_is_heard_though_a_rank_is_lost(begin, count, monkeypatch):
    several, asked = begin(), []
    first, second = several._others.ranks
    lost = others_module.RankLost({second: orders.NoMemory()})
    real = several._others.answers

    def answers(within, ranks=None):
        if not asked:
            asked.append(within)
            real(within, ranks)
            several._others.leave_out([first])
            several._others.lost.append(first)
            raise lost
        return real(within, ranks)

    monkeypatch.setattr(several._others, "answers", answers)
    with pytest.raises(torch.OutOfMemoryError):
        several.move(away=False)
    assert len(several.devices) == 2


def test_a_rank_that_took_no_order_gets_no_other(begin):
    several = begin()
    rank = several._others.ranks[0]
    sent = rank.link
    rank.link = mock.Mock(send_bytes=mock.Mock(side_effect=OSError))
    several._others.tell(orders.Tidy())
    several._others.tell(orders.Tidy())
    assert rank.link.send_bytes.call_count == 1
    rank.link = sent
    with pytest.raises(others_module.RankLost):
        several._others.answers(1.0)


def test_an_order_that_a_stopped_rank_does_not_take_is_waited_for_only_so_long(begin, monkeypatch):
    several = begin()
    several.add_gradients(some_tokens(4), 1.0)
    send(several, 1, signal.SIGSTOP)
    begun = time.monotonic()
    several._others.tell(b"x" * 10_000_000)
    assert time.monotonic() - begun < 2 * others_module.PIPE_SECONDS + 2
    several.add_gradients(some_tokens(4), 1.0)
    assert several.lost() == 2


@pytest.mark.parametrize("count", [3])
def test_ranks_listen_on_loopback_only_and_end_with_rank_0(begin, count):
    several = begin()
    ranks = [psutil.Process(), *(psutil.Process(rank.process.pid) for rank in several._others.ranks)]
    listening = [each.net_connections(kind="inet") for each in ranks]
    addresses = {c.laddr.ip for found in listening for c in found if c.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}
    assert all(any(c.status == psutil.CONN_LISTEN for c in found) for found in listening)
    for rank in several._others.ranks:
        rank.link.close()  # as at the end of rank 0
    for rank in several._others.ranks:
        rank.process.join(10)
        assert rank.process.exitcode == 0


def test_ranks_take_part_in_the_dry_run_in_moves_and_in_checkpointing(begin):
    one, several = alone(), begin()
    several.recompute_activations()
    found = several.dry_run(8)
    assert set(found.seconds) <= {1, 2, 4, 8}
    assert several.lost() == 0
    for parameter in several.parameters:
        parameter.grad = None
    offload = several.offload(several.tensors)
    offload.leave()
    offload.leave()
    offload.come_back()
    offload.come_back()
    several.empty_caches()
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert distance(several, one) < 1e-5


def test_gradients_are_summed_before_the_devices_memory_is_freed(begin, monkeypatch):
    """As in the middle of a step batch, whose gradients the loop hands over then, from a group of NCCL."""
    one, several = alone(), begin()
    requested, sizes = RequestedLimits(), MicroBatches(DryRun({1: 0.1}, 1))
    limits = ResourceLimits(requested, several, sizes, Threads(1), several.offload(several.tensors))
    real = group_module.collectives.sums

    def sums(tensors):
        if limits.offload._others_away:
            raise RuntimeError("No backend type associated with device type cpu")
        return real(tensors)

    monkeypatch.setattr(group_module.collectives, "sums", sums)
    for seed in (1, 2):
        one.add_gradients(some_tokens(8, seed), 1.0)
        several.add_gradients(some_tokens(8, seed), 1.0)
        requested.give(GpuMemory.RELEASE, present=True)
        limits.obey(("", 0.0))
        assert limits.offload._others_away
        several.collect()
        requested.give(GpuMemory.KEEP, present=True)
        limits.obey(("", 0.0))
        limits.prepare()
    assert several.lost() == 0
    assert distance(several, one) < 1e-5


def test_time_of_computing_is_that_of_the_slowest_rank(begin):
    several = begin()
    divide(several, 1, 511)
    several.add_gradients(some_tokens(512), 1.0)
    begun, wall = several.stopwatch(), time.monotonic()
    own = time.thread_time()
    several.add_gradients(some_tokens(512), 1.0)
    spent = several.stopwatch() - begun
    assert spent > 2 * (time.thread_time() - own) or spent > 0.5 * (time.monotonic() - wall)


processes.use_fork()


def test_rank_0_has_as_long_to_meet_the_others_as_these_wait(begin, monkeypatch):
    together, bounds = begin(), []
    watched = group_module.watched
    monkeypatch.setattr(
        group_module, "watched", lambda seconds, late: (bounds.append(seconds), watched(seconds, late))[1]
    )
    together._waits = 120.0
    together._form()
    assert bounds == [group_module.CONNECT_SECONDS + 120.0]


def test_rank_0_alone_computes_losses(begin):
    assert [begin().loss_size(size) for size in (1, 5, 8)] == [1, 2, 4]
