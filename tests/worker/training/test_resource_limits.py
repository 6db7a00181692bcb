"""Orders about memory and threads, with a device whose memory is only counted."""

import pytest
import torch

from english import raises
from skep.core.errors import DeviceError
from skep.core.policy.allowance import GpuMemory
from skep.recipes.tensors.batches import text_batch
from skep.worker.process.memory import PATIENCE_SECONDS, MemoryWatch
from skep.worker.training import resource_limits
from skep.worker.training.device import CPU, Threads
from skep.worker.training.pace import RequestedLimits
from skep.worker.training.resource_limits import DryRun, MicroBatches, ModelOffload, ResourceLimits

DRY_RUN = DryRun({size: 0.01 + 0.002 * size for size in (1, 2, 4, 8, 16, 32, 64)}, 64)
"""16 samples take 42 ms, 32 take 74 ms."""


class Hand:
    now = 100.0

    def __call__(self):
        return self.now


class CountedDevice(ModelOffload):
    """A GPU whose tensors are really in RAM: records which would be on the GPU, with room for `room` of them."""

    def __init__(self, tensors):
        super().__init__(torch.device("cuda"), lambda: tensors)
        self.there = {id(tensor) for tensor in tensors}
        self.all, self.room = tensors, 10**6

    @property
    def away(self):
        return bool(self._away)

    def _home(self, tensor):
        return torch.device("cuda", 0) if id(tensor) in self.there else CPU

    def _moved(self, data, target):
        number = next(index for index, each in enumerate(self.all) if each.data_ptr() == data.data_ptr())
        if target == CPU:
            self.there.discard(id(self.all[number]))
        elif len(self.there) >= self.room:
            raise torch.OutOfMemoryError
        else:
            self.there.add(id(self.all[number]))
        return data.clone()


@pytest.fixture
def told():
    return []


def model():
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    for parameter in made.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return made


class PlainTrainer:
    name = "Fake GPU"

    def __init__(self):
        self.model, self.emptied, self.collected = model(), 0, []
        self.away = lambda: False

    @property
    def parameters(self):
        return list(self.model.parameters())

    def add_gradients(self, batch, scale):
        loss = self.model(batch.inputs).square().mean() * scale
        loss.backward()
        return float(loss.detach())

    def empty_caches(self):
        self.emptied += 1

    def collect(self):
        self.collected.append(self.away())


@pytest.fixture
def bench(told):
    clock = Hand()
    trainer = PlainTrainer()
    optimizer = torch.optim.AdamW(trainer.parameters, lr=0.01)
    optimizer.step()  # creates its statistics
    tensors = [*trainer.parameters, *(p.grad for p in trainer.parameters)]
    tensors += [kept for state in optimizer.state.values() for kept in state.values() if kept.dim()]
    requested = RequestedLimits(clock=clock, obeyed=lambda *news: told.append(news))
    made = ResourceLimits(requested, trainer, MicroBatches(DRY_RUN), Threads(1), CountedDevice(tensors))
    made.clock, made.optimizer = clock, optimizer
    return made


def test_presence_changes_the_size_of_the_very_next_micro_batch(bench):
    assert bench.size == 32
    bench.requested.give(GpuMemory.KEEP, present=True)
    assert bench.size == 16
    bench.requested.give(GpuMemory.KEEP, present=False)
    assert bench.size == 32


def test_shrinking_empties_the_caches_and_takes_one_sample_at_a_time(bench, told, monkeypatch):
    given_back = []
    monkeypatch.setattr(resource_limits, "give_back", lambda: given_back.append(bench.group.emptied))
    assert bench.requested.give(GpuMemory.SHRINK, present=True)
    bench.clock.now += 0.03
    bench.obey(("", 0.0))
    assert (bench.size, bench.group.emptied, bench.must_rest) == (1, 1, False)
    assert given_back == [1]  # RAM too, after the device's memory
    assert not bench.offload.away
    assert told == [(GpuMemory.SHRINK, pytest.approx(0.03), "")]
    bench.requested.give(GpuMemory.KEEP, present=True)
    bench.obey(("", 0.0))
    assert bench.size == 16
    assert [memory for memory, *_ in told] == [GpuMemory.SHRINK, GpuMemory.KEEP]


def test_an_order_is_acknowledged_once_and_names_the_round_that_was_in_the_way(bench, told):
    bench.requested.give(GpuMemory.SHRINK, present=True)
    bench.clock.now += 2.0
    bench.obey(("round", bench.clock.now))
    bench.obey(("round", bench.clock.now))
    assert told == [(GpuMemory.SHRINK, pytest.approx(2.0), "round")]
    bench.requested.give(GpuMemory.KEEP, present=True)  # requested after that round had ended
    bench.clock.now += 0.01
    bench.obey(("round", 102.0))
    assert told[1:] == [(GpuMemory.KEEP, pytest.approx(0.01), "")]


def test_gradients_are_collected_before_the_memory_is_released_except_when_training_is_over(bench):
    bench.group.away = lambda: bench.offload.away
    bench.requested.give(GpuMemory.RELEASE, present=False)
    bench.obey(("", 0.0))
    assert bench.offload.away
    assert bench.group.collected == [False]
    bench.prepare()
    bench.release()  # from a thread that must not wait for the one that trains
    assert bench.offload.away
    assert len(bench.group.collected) == 1


def test_released_the_model_lies_in_ram_and_nothing_is_computed_until_it_may_come_back(bench, told):
    everything = list(bench.offload.all)
    before = [tensor.detach().clone() for tensor in everything]
    bench.requested.give(GpuMemory.RELEASE, present=False)
    bench.obey(("", 0.0))
    assert bench.must_rest
    assert not bench.offload.there
    assert bench.group.emptied == 1
    assert told[0][0] is GpuMemory.RELEASE
    bench.requested.give(GpuMemory.KEEP, present=False)
    bench.obey(("", 0.0))
    assert not bench.offload.there  # only when something is computed
    bench.prepare()
    assert len(bench.offload.there) == len(everything)
    assert all(torch.equal(a, b) for a, b in zip(before, everything, strict=True))
    assert [id(p.grad) for p in bench.group.parameters] == [id(t) for t in everything[4:8]]  # as hivemind requires


def test_training_goes_on_bit_for_bit_where_it_was(bench):
    plain = PlainTrainer()
    plain_optimizer = torch.optim.AdamW(plain.parameters, lr=0.01)
    plain_optimizer.step()
    torch.manual_seed(3)
    batches = [text_batch(torch.randn(4, 8)) for _ in range(6)]
    for number, batch in enumerate(batches):
        plain.add_gradients(batch, 0.5)
        bench.prepare()
        bench.add_gradients(batch, 0.5)
        if number in {1, 4}:
            bench.requested.give(GpuMemory.RELEASE, present=False)
            bench.obey(("", 0.0))
            bench.requested.give(GpuMemory.KEEP, present=False)
            bench.obey(("", 0.0))
        if number == 4:  # the optimizer steps while the model is offloaded, as in the last round before a pause
            plain_optimizer.step()
            bench.optimizer.step()
    for ours, theirs in zip(bench.group.parameters, plain.parameters, strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(ours.grad, theirs.grad)


def test_a_model_that_finds_no_room_to_come_back_waits_in_ram(bench):
    bench.requested.give(GpuMemory.RELEASE, present=False)
    bench.obey(("", 0.0))
    before = [tensor.detach().clone() for tensor in bench.offload.all]
    bench.offload.room = 3
    with pytest.raises(torch.OutOfMemoryError):
        bench.prepare()
    assert not bench.offload.there
    assert all(torch.equal(a, b) for a, b in zip(before, bench.offload.all, strict=True))
    bench.offload.room = 10**6
    bench.prepare()
    assert len(bench.offload.there) == len(bench.offload.all)


def test_what_was_on_several_devices_goes_back_to_its_own():
    sent, kept = [], [torch.ones(1), torch.ones(1)]

    class Several(ModelOffload):
        def _moved(self, data, target):
            sent.append(str(target))
            return data

        def _home(self, tensor):
            return torch.device("cuda", next(number for number, each in enumerate(kept) if each is tensor))

    offload = Several(torch.device("cuda"), lambda: kept)
    offload.leave()
    offload.come_back()
    assert sent == ["cpu", "cpu", "cuda:0", "cuda:1"]


def test_on_the_processor_a_release_is_only_acknowledged(told):
    trainer = PlainTrainer()
    places = [parameter.data_ptr() for parameter in trainer.parameters]
    offload = ModelOffload(CPU, lambda: trainer.parameters)
    requested = RequestedLimits(obeyed=lambda *news: told.append(news))
    made = ResourceLimits(requested, trainer, MicroBatches(DRY_RUN), Threads(1), offload)
    requested.give(GpuMemory.RELEASE, present=False)
    made.obey(("", 0.0))
    assert told[0][0] is GpuMemory.RELEASE
    assert made.must_rest
    assert [parameter.data_ptr() for parameter in trainer.parameters] == places


def test_a_worker_that_starts_released_says_so_when_it_can(told):
    requested = RequestedLimits(memory=GpuMemory.RELEASE, obeyed=lambda *news: told.append(news))
    requested.done(GpuMemory.RELEASE, "", 0.0)
    assert told[0][0] is GpuMemory.RELEASE
    RequestedLimits(obeyed=lambda *news: told.append(news)).done(GpuMemory.KEEP, "", 0.0)
    assert len(told) == 1  # not requested, so not reported


def test_of_two_orders_only_the_last_is_acknowledged(told):
    requested = RequestedLimits(obeyed=lambda *news: told.append(news))
    requested.give(GpuMemory.SHRINK, present=True)
    requested.give(GpuMemory.RELEASE, present=True)
    requested.done(GpuMemory.SHRINK, "", 0.0)
    assert told == []
    requested.done(GpuMemory.RELEASE, "", 0.0)
    assert len(told) == 1


# --- memory of this computer


@pytest.fixture
def ram():
    class Ram:
        clock, left = Hand(), 5

        def __init__(self):
            self.watch = MemoryWatch(3, lambda: self.left, self.clock)

    return Ram()


def test_ram_is_watched_once_a_second(ram):
    assert not ram.watch.short
    ram.left = 2
    assert not ram.watch.short
    ram.clock.now += 1.0
    assert ram.watch.short
    ram.left = 4
    ram.clock.now += 1.0
    assert not ram.watch.short


def test_ram_that_stays_short_ends_the_training_in_words(ram):
    ram.left = 1
    for _ in range(int(PATIENCE_SECONDS)):
        assert ram.watch.short
        ram.clock.now += 1.0
    ram.clock.now += 1.0
    with raises(DeviceError, match=r"Less than 0\.0 GB of this computer's memory is free for your programs\."):
        _ = ram.watch.short


def test_short_ram_takes_one_sample_at_a_time(bench, ram):
    bench.ram = ram.watch
    ram.left = 1
    assert bench.size == 1


def test_nothing_asked_for_is_nothing_watched():
    watch = MemoryWatch(0, lambda: 0)
    assert watch.enough()
    assert not watch.short


def test_the_real_memory_is_looked_at():
    assert MemoryWatch(1).enough()
    assert not MemoryWatch(10**15).enough()


def test_a_size_that_ran_out_is_not_used_again_before_memory_is_given_back(bench):
    bench.sizes = MicroBatches(DryRun({1: 0.01, 2: 0.011, 4: 0.012}, 4))
    real, tried = bench.group.add_gradients, []

    def scarce(batch, scale):
        tried.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError
        return real(batch, scale)

    bench.group.add_gradients = scarce
    bench.add_gradients(text_batch(torch.randn(4, 8)), 1.0)
    assert tried == [4, 2, 2]
    assert bench.size == 2
