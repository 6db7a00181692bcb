"""What a Trainer hands over to the swarm: how many samples, with which gradients, and how often it takes part."""

import warnings

import pytest
import torch

pytest.importorskip("lightning")

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from lightning.pytorch.utilities.rank_zero import rank_zero_info

from skep.lightning import HivemindStrategy
from skep.lightning.sizes import BatchSizes
from skep.training import TrainingError


class Module(LightningModule):
    """Its gradient is the mean of the samples."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch, _number):
        return (self.weight * (batch["samples"] if isinstance(batch, dict) else batch)).mean()

    def validation_step(self, batch, _number):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


class SwarmOfNobody:
    """In place of Swarm: notes what is contributed, and takes the gradients as it does."""

    def __init__(self, module, finished_after):
        self.module, self.contributed, self.tended, self.left = module, [], 0, False
        self.finished_after = finished_after

    @property
    def finished(self):
        return len(self.contributed) + self.tended >= self.finished_after

    def contribute(self, samples, *, scaled):
        assert scaled
        self.contributed.append((samples, self.module.weight.grad.item()))
        self.module.weight.grad.zero_()

    def tend(self):
        gradient = self.module.weight.grad
        assert gradient is None or not gradient.item()  # a round would drop it
        self.tended += 1

    def leave(self):
        self.left = True


def fitted(monkeypatch, samples, *, strategy=None, collate=None, finished_after=1000, **options):
    """The swarm and the arguments with which it was joined, after a pass over `samples` in batches of 4."""
    given = {}

    def join(module, **arguments):
        given.update(arguments, swarm=SwarmOfNobody(module, finished_after), trainer=module.trainer)
        return given["swarm"]

    monkeypatch.setattr("skep.training.join", join)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's, about the number of its workers for example
        trainer = Trainer(
            strategy=HivemindStrategy(**{"target_batch_size": 64} | (strategy or {})),
            accelerator="cpu",
            devices=1,
            **{"max_epochs": 1} | quiet | options,
        )
        loader = torch.utils.data.DataLoader(torch.tensor(samples), batch_size=4, collate_fn=collate)
        trainer.fit(Module(), loader, loader)
    return given["swarm"], given


def make_schedule(optimizer):
    return torch.optim.lr_scheduler.ConstantLR(optimizer)


def make_averager():
    pass


RENAMED = {"scheduler_fn", "averager_opts", "host_maddrs"}
STRATEGY = {
    "target_batch_size": 48,
    "run_id": "another-run",
    "batch_size": 2,
    "initial_peers": ["/ip4/127.0.0.1/tcp/1"],
    "delay_state_averaging": True,
    "delay_optimizer_step": True,
    "delay_grad_averaging": True,
    "offload_optimizer": True,
    "reuse_grad_buffers": True,
    "scheduler_fn": make_schedule,
    "grad_compression": "float16",
    "state_averaging_compression": "uniform-8bit",
    "grad_averager_factory": make_averager,
    "averager_opts": {"bandwidth": 0.25},
    "matchmaking_time": 3.0,
    "averaging_timeout": 21.0,
    "verbose": True,
    "host_maddrs": ["/ip4/127.0.0.1/tcp/31337"],
}
"""All arguments of a strategy that are not for several devices, without a project; none of them has its default."""


def test_every_argument_of_the_strategy_reaches_the_swarm(monkeypatch):
    _, given = fitted(monkeypatch, [1.0] * 4, strategy=STRATEGY, gradient_clip_val=0.5)
    trained = given["trainer"].lightning_module.weight
    (group,) = given["parameters"]
    assert group["params"] == [trained]
    assert isinstance(given["optimizer"]([group]), torch.optim.SGD)
    own = {name: given[name] for name in given if name not in {"swarm", "trainer", "parameters", "optimizer"}}
    assert own == {name: value for name, value in STRATEGY.items() if name not in RENAMED} | {
        "project": "",
        "scheduler": make_schedule,
        "clip_norm": 0.5,
        "bandwidth": 0.25,
        "host": "127.0.0.1",
        "port": 31337,
        "report": rank_zero_info,
    }


def test_without_arguments_the_strategy_gives_its_defaults(monkeypatch):
    _, given = fitted(monkeypatch, [1.0] * 4)
    assert (given["host"], given["port"], given["bandwidth"]) == ("0.0.0.0", 0, 1.0)
    assert (given["matchmaking_time"], given["averaging_timeout"], given["verbose"]) == (5.0, 30.0, False)


def test_beside_a_project_the_strategy_gives_nothing_that_the_project_has(monkeypatch):
    local = {name: STRATEGY[name] for name in ("initial_peers", "averager_opts", "host_maddrs", "verbose")}
    _, given = fitted(monkeypatch, [1.0] * 4, strategy={"project": "project.json", "target_batch_size": 0, **local})
    own = {name: given[name] for name in given if name not in {"swarm", "trainer", "parameters"}}
    assert own == {
        "batch_size": 4,
        "run_id": "",
        "target_batch_size": 0,
        "optimizer": None,
        "project": "project.json",
        "initial_peers": STRATEGY["initial_peers"],
        "scheduler": None,
        "clip_norm": None,
        "host": "127.0.0.1",
        "port": 31337,
        "bandwidth": 0.25,
        "report": rank_zero_info,
        "verbose": True,
    }


def test_a_smaller_last_batch_is_weighted_by_its_samples(monkeypatch):
    swarm, given = fitted(monkeypatch, [1.0, 2.0, 3.0, 4.0, 8.0, 8.0], num_sanity_val_steps=0)
    assert given["batch_size"] == 4
    assert swarm.contributed == [(4, 2.5), (2, 8.0 * 2 / 4)]


def test_accumulated_batches_are_contributed_together(monkeypatch):
    swarm, given = fitted(monkeypatch, [1.0] * 4 + [3.0] * 4 + [8.0] * 2, accumulate_grad_batches=2)
    assert given["batch_size"] == 8
    assert swarm.contributed == [(8, 2.0), (2, 8.0 * 2 / 8)]


def test_it_takes_part_between_the_batches_of_a_validation_and_leaves_at_the_end(monkeypatch):
    swarm, _ = fitted(monkeypatch, [1.0] * 8)
    assert swarm.tended == 2  # not before the first batch, in the sanity check
    assert swarm.left


def test_clipping_by_norm_is_left_to_the_swarm(monkeypatch):
    swarm, given = fitted(monkeypatch, [8.0] * 4, gradient_clip_val=1.0)
    assert given["clip_norm"] == 1.0
    assert swarm.contributed == [(4, 8.0)]


def test_a_clipping_of_zero_clips_nothing(monkeypatch):
    _, given = fitted(monkeypatch, [8.0] * 4, gradient_clip_val=0)
    assert given["clip_norm"] is None
    assert given["trainer"].gradient_clip_val == 0


def test_it_takes_part_in_nothing_while_an_accumulated_batch_waits(monkeypatch):
    swarm, _ = fitted(monkeypatch, [1.0] * 16, accumulate_grad_batches=2, val_check_interval=3, num_sanity_val_steps=0)
    assert swarm.contributed == [(8, 1.0)] * 2
    assert swarm.tended == 0


@pytest.mark.parametrize("schedule", [{0: 2, 1: 1}, {0: 1, 1: 2}])
def test_batches_are_weighted_by_how_many_are_accumulated_at_present(monkeypatch, schedule):
    callbacks = [GradientAccumulationScheduler(schedule)]
    swarm, given = fitted(monkeypatch, [1.0] * 16, max_epochs=2, num_sanity_val_steps=0, callbacks=callbacks)
    assert given["batch_size"] == 8
    assert sorted(swarm.contributed) == [(4, 0.5)] * 4 + [(8, 1.0)] * 2


@pytest.mark.parametrize("finished_after", [0, 2, 4])
def test_a_swarm_that_has_finished_stops_the_trainer(monkeypatch, finished_after):
    swarm, given = fitted(monkeypatch, [1.0] * 16, max_epochs=3, num_sanity_val_steps=0, finished_after=finished_after)
    assert given["trainer"].should_stop
    assert len(swarm.contributed) == max(finished_after, 1)


def with_an_index(samples):
    """A batch whose first tensor has five rows for each sample."""
    return {"index": torch.arange(len(samples) * 5), "samples": torch.stack(samples)}


def test_the_given_batch_size_says_which_tensor_counts(monkeypatch):
    options = {"strategy": {"batch_size": 4}, "collate": with_an_index}
    swarm, given = fitted(monkeypatch, [1.0] * 4 + [8.0] * 2, num_sanity_val_steps=0, **options)
    assert given["batch_size"] == 4
    assert swarm.contributed == [(4, 1.0), (2, 8.0 * 2 / 4)]


def test_a_batch_whose_samples_cannot_be_counted_is_refused(monkeypatch):
    with pytest.raises(TrainingError, match="batch_size"):
        fitted(monkeypatch, [1.0] * 4, collate=with_an_index)


def test_batches_whose_tensors_have_another_length_are_whole_ones():
    sizes = BatchSizes(4)
    assert [sizes.samples_of(torch.ones(length)) for length in (20, 15)] == [4, 4]


def test_a_first_batch_may_be_smaller_than_those_that_are_given():
    sizes = BatchSizes(8)
    assert [sizes.samples_of(torch.ones(length)) for length in (4, 8)] == [4, 8]
