"""In a swarm with a second peer, two ranks end with the parameters that one rank ends with: fixed samples, no lossy codec.

The ranks of all tests are forked first, before torch's autograd is used in this process and hivemind forks its own.
"""

import math

import pytest
import torch

from manifests import raw
from skep.core.session.messages import ContributionConfirmed
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.ranks.group import GroupTrainer
from skep.worker.ranks.others import fork
from skep.worker.ranks.sharded_group import ShardedTrainer
from skep.worker.training.device import CPU, TrainingDevice
from skep.worker.training.trainer import Trainer
from swarm_peers import STEP_BATCH, SmallPeer, finish_together, manifest_of, together

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
RECIPE = {"recipe__model": GPT2, "recipe__sequence_length": 16}
EPOCHS = 3
FLAGS = ("offload_optimizer", "reuse_grad_buffers", "delay_optimizer_step", "delay_grad_averaging")
FLAGS = (*FLAGS, "delay_state_averaging")
MICRO = [[5, 3], [8], [4, 1]], [[8], [3]]
"""Of each peer: its step batches, each of so many micro-batches of so many samples."""
TARGET = sum(sum(map(sum, mine)) for mine in MICRO)
CASES = {
    # name: flags, precision, and the sizes of the parts of a micro-batch, None for equal ones
    "as-in-the-example": ("11101", "fp32", None),
    "unequal": ("11101", "fp32", lambda samples, _parts: [1, samples - 1]),
    "nothing-delayed": ("00000", "fp32", None),
    "fp16": ("11101", "fp16", lambda samples, _parts: [samples - 1, 1]),
    "offload": ("10000", "fp32", None),
    "reuse": ("01000", "fp32", lambda samples, _parts: [samples - 1, 1]),
    "delayed-state": ("00001", "fp32", None),
    "delayed-step": ("10101", "fp32", None),
    "all-delayed": ("11111", "fp32", lambda samples, _parts: [samples - 1, 1]),
}
USUAL = ["unequal", "fp16", "all-delayed"]
SHARDED = {"sharded": "11101", "sharded-nothing-delayed": "00000", "sharded-all-delayed": "11111"}
"""Of four ranks that share the model."""
SAMPLES = 40
"""Of each epoch and peer, at least as many as it computes."""


@pytest.fixture(scope="module", autouse=True)
def forked():
    torch.set_num_threads(1)
    manifest = parse_manifest(raw(**RECIPE))
    made = {name: fork(["cpu"], manifest) for name in CASES}
    made |= {name: fork(["cpu"] * 3, manifest) for name in SHARDED}
    yield made
    for rank in [rank for others in made.values() for rank in others.ranks]:
        rank.process.kill()
        rank.process.join()


class TrainingPeer(SmallPeer):
    """A peer that computes its gradients with a trainer."""

    def _parameters_of(self, trainer):
        self.trainer = trainer
        return trainer.parameters

    def train(self, epoch, seed, micro):
        """One epoch's samples; a micro-batch whose gradients overflow in fp16 is computed again."""
        torch.manual_seed(100 * epoch + seed)
        samples, done = open_recipe(manifest_of("samples", TARGET, **RECIPE).recipe).example(SAMPLES), 0
        for batches in micro:
            for size in batches:
                while math.isnan(self.trainer.add_gradients(samples.part(done, size), size / STEP_BATCH)):
                    self.skipped += 1
                done += size
                self.rounds.grow(self.optimizer.local_epoch, size)
            self.trainer.collect()
            assert self.trainer.gradients_finite()
            self.optimizer.contribute(sum(batches))

    skipped = 0


def parameters_after(swarm, manifest, trainer):
    """Of `trainer`'s peer, after EPOCHS with another peer."""
    second = Trainer(manifest, TrainingDevice(CPU, "CPU", "fp32"))
    with swarm.peers(manifest, [trainer, second], TrainingPeer) as peers:
        for peer in peers:
            peer.optimizer.tracker.rate = lambda: 0.0  # epochs end with their samples, and not when they are expected
        for epoch in range(EPOCHS):
            together(*(peer.settle_in for peer in peers))
            for seed, (peer, micro) in enumerate(zip(peers, MICRO, strict=True)):
                peer.train(epoch, seed, micro)
            ends = finish_together(peers, epoch)
            assert [type(end) for end in ends] == [ContributionConfirmed] * 2, ends
            assert [end.samples for end in ends] == [sum(map(sum, micro)) for micro in MICRO]
            for peer in peers:
                steps = epoch + 1
                peer.take_up_until(lambda peer=peer, steps=steps: peer.optimizer.state_averager.whole_epoch >= steps)
                peer.take_up_until(lambda peer=peer: not peer.optimizer.state_averager.pending_updates)
                peer.optimizer.apply_arrived()
        return torch.cat([value.flatten() for value in peers[0].values()]), peers[0].skipped


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", [*USUAL, *(pytest.param(name, marks=pytest.mark.long) for name in CASES if name not in USUAL)]
)
def test_two_ranks_and_one_end_with_the_same_parameters(swarm, forked, tmp_path, name):
    code, precision, sizes = CASES[name]
    flags = {f"sync__{flag}": digit == "1" for flag, digit in zip(FLAGS, code, strict=True)}
    one, two = (
        manifest_of(f"lockstep-{name}-{ranks}", TARGET, **flags, **RECIPE, optimizer__learning_rate=0.5)
        for ranks in (1, 2)
    )
    device = TrainingDevice(CPU, "CPU", precision)
    group = GroupTrainer(two, device, forked[name], tmp_path)
    group.begin()
    if sizes:
        group._division.sizes = sizes
    start = torch.cat([p.detach().flatten() for p in group.parameters])
    if precision == "fp16":
        group.loss_scale.factor = scale_that_one_sample_overflows(group)
    together_ended, skipped = parameters_after(swarm, two, group)
    alone_ended, _ = parameters_after(swarm, one, Trainer(one, device))
    assert (alone_ended - start).norm() > 0.1 * start.norm() / 100
    apart = (together_ended - alone_ended).abs().max()
    if precision == "fp16":
        assert skipped
        assert apart < 2e-3 * (alone_ended - start).abs().max()
    else:
        assert apart < 1e-6


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    ["sharded", *(pytest.param(name, marks=pytest.mark.long) for name in SHARDED if name != "sharded")],
)
def test_four_ranks_that_share_the_model_and_one_end_with_the_same_parameters(swarm, forked, tmp_path, name):
    flags = {f"sync__{flag}": digit == "1" for flag, digit in zip(FLAGS, SHARDED[name], strict=True)}
    one, four = (
        manifest_of(f"lockstep-{name}-{ranks}", TARGET, **flags, **RECIPE, optimizer__learning_rate=0.5)
        for ranks in (1, 4)
    )
    device = TrainingDevice(CPU, "CPU", "fp32")
    group = ShardedTrainer(four, device, forked[name], tmp_path)
    group.begin()
    start = torch.cat([p.detach().flatten() for p in group.parameters])
    together_ended, _ = parameters_after(swarm, four, group)
    alone_ended, _ = parameters_after(swarm, one, Trainer(one, device))
    assert len(group.devices) == 4
    assert group.lost() == 0
    assert (alone_ended - start).norm() > 0.1 * start.norm() / 100
    assert (together_ended - alone_ended).abs().max() < 1e-5


def scale_that_one_sample_overflows(group):
    """The least scale at which the last sample of a micro-batch of five overflows: the mean of four does not yet."""
    torch.manual_seed(0)
    samples, factor = open_recipe(manifest_of("samples", TARGET, **RECIPE).recipe).example(SAMPLES), 2.0**10
    while group.compute(samples.part(4, 1), 2 * factor)[1].finite:
        factor *= 2
    while group.compute(samples.part(4, 1), factor)[1].finite:
        factor *= 1.02
    assert group.compute(samples.part(0, 4), factor)[1].finite
    return factor
