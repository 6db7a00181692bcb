"""Sharded ranks on the processor compute the same as one device, through kills, hangs, overflows and lack of memory.

All ranks are forked before anything is computed: torch's autograd does not work in forks of a process that has used it.
"""

import os
import signal
import time
from unittest import mock

import pytest
import torch
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule

from english import in_english
from manifests import raw
from skep.core.errors import DeviceError
from skep.core.session.messages import WorkerOptions
from skep.recipes.contract import NO_FILES
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.joining import Joining, _Hardware
from skep.worker.ranks import orders, rendezvous, sharded_rank
from skep.worker.ranks import rank as rank_module
from skep.worker.ranks.choice import Choice
from skep.worker.ranks.group import LATE_SECONDS, Building, GroupTrainer
from skep.worker.ranks.others import fork
from skep.worker.ranks.sharded_group import SHARDED_SECONDS, ShardedTrainer
from skep.worker.ranks.sharding import ShardedModel
from skep.worker.training.device import CPU, TrainingDevice
from skep.worker.training.device_errors import add_gradients
from skep.worker.training.trainer import Trainer

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
MANIFEST = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=16))
ROOM = 3
"""Samples that fit into the memory of a rank whose memory is small."""


class SmallMemory(ShardedModel):
    """Runs out of memory in the backward pass of its first part, when the others wait for its gradients."""

    def _loss(self, part):
        loss = super()._loss(part)
        if len(part) > ROOM:
            loss.register_hook(no_memory)
        return loss


class TightMemory(ShardedModel):
    """Has memory only where activations are computed again."""

    def __init__(self, recipe, mesh, precision, *, recompute=False, offload=False):
        super().__init__(recipe, mesh, precision, recompute=recompute, offload=offload)
        self.recomputes = recompute

    def _loss(self, part):
        if not self.recomputes:
            raise torch.OutOfMemoryError
        return super()._loss(part)


class LostCard(ShardedModel):
    """Its card is lost in the second micro-batch."""

    _computed = False

    def _loss(self, part):
        if self._computed:
            raise RuntimeError("CUDA error: unspecified launch failure")
        self._computed = True
        return super()._loss(part)


def no_memory(_gradient):
    raise torch.OutOfMemoryError


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Ranks for the tests of this module, by the number of ranks with rank 0."""
    torch.set_num_threads(1)
    made = {count: [fork(["cpu"] * (count - 1), MANIFEST) for _ in range(sets)] for count, sets in ((2, 19), (4, 9))}
    with mock.patch.object(sharded_rank, "ShardedModel", SmallMemory):
        made["small"] = [fork(["cpu"], MANIFEST) for _ in range(2)]
    with mock.patch.object(sharded_rank, "ShardedModel", TightMemory):
        made["tight"] = [fork(["cpu"], MANIFEST)]
    with mock.patch.object(sharded_rank, "ShardedModel", LostCard):
        made["card lost"] = [fork(["cpu"], MANIFEST)]
    with mock.patch.object(rank_module, "ComputeGroup", mock.Mock(side_effect=torch.OutOfMemoryError)):
        made["no copy"] = [fork(["cpu"], MANIFEST) for _ in range(3)]
    yield made
    for rank in [rank for sets in made.values() for others in sets for rank in others.ranks]:
        rank.process.kill()
        rank.process.join()


@pytest.fixture
def take(forked):
    used = []

    def take(count):
        used.append(forked[count].pop())
        return used[-1]

    yield take
    for rank in [rank for others in used for rank in others.ranks]:
        rank.process.kill()
        rank.process.join()


@pytest.fixture
def begin(take, tmp_path):
    def begin(count=2, precision="fp32", **options):
        others = take(count)
        made = ShardedTrainer(MANIFEST, TrainingDevice(CPU, "CPU", precision), others, tmp_path, **options)
        made.begin()
        made._waits, made._ready = SHARDED_SECONDS, False  # as after a dry run
        return made

    return begin


def alone(precision="fp32"):
    return Trainer(MANIFEST, TrainingDevice(CPU, "CPU", precision))


def some_tokens(samples, seed=0):
    torch.manual_seed(seed)
    return open_recipe(MANIFEST.recipe).example(samples)


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


def distance(made, other):
    return float((gradients(made) - gradients(other)).norm() / gradients(other).norm())


def send(made, number, how):
    os.kill(made._others.ranks[number - 1].process.pid, how)


@pytest.mark.parametrize(("count", "samples"), [(2, 8), (2, 1), (4, 7)])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_several_ranks_give_the_loss_and_the_gradients_of_one(begin, precision, count, samples):
    one, several = alone(precision), begin(count, precision)
    batch = some_tokens(samples)
    for scale in (0.5, 0.25):  # the second is added to the first
        value, together = one.add_gradients(batch, scale), several.add_gradients(batch, scale)
        assert together == pytest.approx(value, rel=1e-3)
    assert not gradients(several).any()
    several.collect()
    assert distance(several, one) < (1e-5 if precision == "fp32" else 2e-2)
    assert several.lost() == 0
    assert several.gradients_finite()
    assert several.loss(batch) == pytest.approx(one.loss(batch), rel=1e-3)


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
    for seed in (1, 2):
        one.add_gradients(some_tokens(4, seed), 1.0)
        several.add_gradients(some_tokens(4, seed), 1.0)
        several.collect()
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_costs_what_the_shards_had(begin, how):
    told, one = [], alone()
    several = begin(4, told=told.append)
    one.add_gradients(some_tokens(8, seed=2), 1.0)
    several.add_gradients(some_tokens(8, seed=2), 1.0)
    several.collect()
    several.add_gradients(some_tokens(8), 1.0)
    process = several._others.ranks[1].process
    send(several, 2, how)
    begun = time.monotonic()
    several.add_gradients(some_tokens(8, seed=1), 1.0)
    several.collect()
    assert time.monotonic() - begun < 20
    assert several.lost() == 8
    assert several.lost() == 0
    assert not process.is_alive()
    assert [in_english(problem.title) for problem in told] == [
        "CPU stopped training: its process ended or does not answer."
    ]
    assert len(several.devices) == 3
    one.add_gradients(some_tokens(8, seed=1), 1.0)
    assert distance(several, one) < 1e-5


def test_a_card_that_is_lost_costs_what_the_shards_had_and_the_other_goes_on(begin):
    told, one = [], alone()
    several = begin("card lost", told=told.append)
    several.add_gradients(some_tokens(4, seed=1), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert several.lost() == 4
    assert [in_english(problem.title) for problem in told] == [
        "CPU stopped training: its process ended or does not answer."
    ]
    assert len(several.devices) == 1
    one.add_gradients(some_tokens(8), 1.0)
    assert distance(several, one) < 1e-5


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_before_the_sums_are_gathered_leaves_those_of_before(begin, how):
    several = begin(4)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    before = gradients(several).clone()
    several.add_gradients(some_tokens(8, seed=1), 1.0)
    send(several, 3, how)
    several.collect()
    assert several.lost() == 8
    assert torch.equal(gradients(several), before)
    assert several.loss(some_tokens(8)) == pytest.approx(alone().loss(some_tokens(8)), rel=1e-5)
    assert len(several.devices) == 3


def test_a_micro_batch_too_large_for_one_rank_is_computed_in_halves_and_counted_once(begin):
    one, several, too_large = alone(), begin("small"), []
    several.add_gradients(some_tokens(4, seed=1), 1.0)
    one.add_gradients(some_tokens(12), 1.0)
    begun = time.monotonic()
    loss = add_gradients(several, some_tokens(12), 1.0, too_large.append)
    assert time.monotonic() - begun < SHARDED_SECONDS  # nobody waited for the rank without memory
    several.collect()
    assert loss == pytest.approx(one.loss(some_tokens(12)), rel=1e-5)
    assert distance(several, one) < 1e-5
    assert too_large == [12]
    assert several.lost() == 4
    assert len(several.devices) == 2


def test_the_dry_run_finds_what_the_rank_with_the_least_memory_has_room_for(begin):
    several = begin("small")
    found = several.dry_run(32)
    assert found.limit <= 2 * ROOM
    several.add_gradients(some_tokens(2 * ROOM), 1.0)
    assert several.lost() == 0
    assert len(several.devices) == 2


def test_activations_are_computed_again_where_nothing_else_fits(begin):
    one, several = alone(), begin("tight")
    several.dry_run(2)
    assert several.checkpointing
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert distance(several, one) < 1e-5


def test_gradients_are_kept_when_the_devices_memory_is_freed(begin):
    one, several = alone(), begin()
    offload = several.offload(several.tensors)
    for seed in (1, 2):
        one.add_gradients(some_tokens(8, seed), 1.0)
        several.add_gradients(some_tokens(8, seed), 1.0)
        several.collect()
        offload.leave()
        assert several._rank._model is None
        several.empty_caches()
        offload.leave()
        offload.come_back()
        offload.come_back()
    assert several.lost() == 0
    assert distance(several, one) < 1e-5


def test_at_the_end_of_training_no_gradients_are_gathered_when_the_memory_is_freed(begin, monkeypatch):
    several = begin()
    offload = several.offload(several.tensors)
    several.add_gradients(some_tokens(8, 1), 1.0)
    monkeypatch.setattr(several, "collect", lambda: pytest.fail("gathered"))
    offload.leave()
    assert several._rank._model is None
    assert several.lost() == 8


def test_the_scale_of_fp16_stays_what_it_was_in_the_next_group(begin):
    one, several = alone("fp16"), begin(precision="fp16")
    several.loss_scale.factor = 2.0**12
    several.add_gradients(some_tokens(4), 0.0)
    several.forget()
    several._ready = False
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert several.loss_scale.factor == 2.0**12
    assert distance(several, one) < 2e-2


def test_a_group_that_fails_again_and_again_ends_the_worker(begin, monkeypatch):
    several = begin()
    monkeypatch.setattr(several._rank, "_make", mock.Mock(side_effect=RuntimeError("a timeout")))
    with pytest.raises(DeviceError):
        several.add_gradients(some_tokens(4), 1.0)
    assert several.lost() == 0


def test_a_rank_holds_its_share_only_and_rank_0_the_masters(begin):
    several = begin(4)
    several.add_gradients(some_tokens(8), 1.0)
    whole = sum(p.nbytes for p in several.parameters)
    shares = sum(each.nbytes for each in several._rank._model.tensors())
    buffers = sum(each.nbytes for each in several._rank._model._model.buffers())
    assert shares - buffers <= 2 * whole / 4 + 8 * 64


def test_the_others_have_their_time_when_rank_0_runs_out_of_memory(begin, monkeypatch):
    several, given = begin(), []
    answers = several._others.answers
    monkeypatch.setattr(several._others, "answers", lambda within: (given.append(within), answers(within))[1])

    def slow_and_full():
        time.sleep(0.5)
        several._rank.drop()
        rendezvous.leave()
        return orders.NoMemory()

    with pytest.raises(torch.OutOfMemoryError):
        several._everyone(slow_and_full, orders.LoadTrained())
    assert given == [LATE_SECONDS + SHARDED_SECONDS]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_shards_in_the_hosts_memory_give_the_gradients_of_one(begin, precision):
    one, several = alone(precision), begin(2, precision, building=Building(offload=True))
    for seed in range(2):
        one.add_gradients(some_tokens(8, seed), 0.5)
        several.add_gradients(some_tokens(8, seed), 0.5)
    several.collect()
    assert distance(several, one) < (1e-5 if precision == "fp32" else 2e-2)
    parts = [each for each in several._rank._model._model.modules() if isinstance(each, FSDPModule)]
    groups = [group for each in parts for group in each._get_fsdp_state()._fsdp_param_groups]
    assert {type(group.offload_policy) for group in groups} == {CPUOffloadPolicy}


def test_all_ranks_compute_losses(begin):
    assert begin().loss_size(8) == 8


def test_the_last_of_two_ranks_goes_on_alone(begin):
    one, several = alone(), begin()
    send(several, 1, signal.SIGKILL)
    one.add_gradients(some_tokens(8), 1.0)
    several.add_gradients(some_tokens(8), 1.0)
    several.collect()
    assert distance(several, one) < 1e-5
    assert [each.name for each in several.devices] == ["CPU"]


def once(error, then):
    """Raises `error` when it is called first, and does `then` later."""
    calls = []

    def call(trainer):
        calls.append(trainer)
        if len(calls) == 1:
            raise error
        then(trainer)

    return call


@pytest.fixture
def build(tmp_path):
    """What a worker does with these ranks."""

    def build(others):
        options = WorkerOptions(manifest="", index=None, run_folder=str(tmp_path), nice=0)
        joining = Joining(options, MANIFEST, *[mock.Mock(present=False, share=1.0, part_of=lambda *_: 1.0)] * 8)
        return joining._trainer(
            _Hardware(TrainingDevice(CPU, "CPU", "fp32"), others, Choice(("cpu",) * 2), mock.Mock()), NO_FILES
        )

    return build


@pytest.mark.parametrize("ranks", [2, "no copy"])
@pytest.mark.parametrize("what", ["home", "_make_buffers"])
def test_a_model_of_which_the_first_device_has_no_room_for_a_copy_is_spread(take, build, monkeypatch, ranks, what):
    if what == "home":
        monkeypatch.setattr(GroupTrainer, "home", property(mock.Mock(side_effect=torch.OutOfMemoryError)))
    else:  # room for the parameters, and none for their gradients
        monkeypatch.setattr(GroupTrainer, "_make_buffers", once(torch.OutOfMemoryError, GroupTrainer._make_buffers))
    made = build(take(ranks))
    assert isinstance(made, ShardedTrainer)
    made.begin()
    assert len(made.devices) == 2
    one = alone()
    one.add_gradients(some_tokens(8), 1.0)
    made.add_gradients(some_tokens(8), 1.0)
    made.collect()
    assert distance(made, one) < 1e-5


def test_a_device_without_room_for_a_copy_that_the_first_one_holds_is_left_out(take, build):
    made = build(take("no copy"))
    assert type(made) is GroupTrainer
    assert len(made.devices) == 1
