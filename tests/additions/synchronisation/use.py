"""A manifest names the strategy; the training loop uses it with one other peer. Exits with 3 without it."""

import sys
import threading
from types import SimpleNamespace

from manifests import raw
from skep.core.errors import ManifestError
from skep.recipes.registry import parse_manifest

MODEL = {"type": "gpt2", "layers": 1, "heads": 1, "width": 8, "vocabulary": 256}

try:
    manifest = parse_manifest(
        raw(recipe__model=MODEL, recipe__sequence_length=8, sync__mode="local-steps", sync__target_batch_size=8)
    )
except ManifestError:
    sys.exit(3)

import torch

from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.recipes.tensors.batches import text_batch
from skep.worker.connection.network import ByteCounters
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import Participant, run_of, strategy_of
from skep.worker.training.device import CPU, Threads, pick
from skep.worker.training.loop import TrainingLoop
from skep.worker.training.pace import Pace, RequestedLimits
from skep.worker.training.resource_limits import DryRun, MicroBatches, ModelOffload, ResourceLimits
from skep.worker.training.trainer import Trainer


class Link:
    """Ends the training after three confirmed contributions."""

    def __init__(self):
        self.said, self.finish = [], threading.Event()

    def send(self, message):
        self.said.append(message)
        if len(self.all(ContributionConfirmed)) == 3:
            self.finish.set()

    def received(self):
        return []

    def all(self, kind):
        return [message for message in self.said if isinstance(message, kind)]


class Samples:
    position = 0

    def ready(self, _count):
        return True

    def plan(self, _count):
        pass

    def next_batch(self, count):
        self.position += count
        return text_batch(torch.full((count, 8), 7))

    def held_out(self, _count):
        return None


link, trainer = Link(), Trainer(manifest, pick("cpu", "fp32"))
rounds, pace = Rounds("s", link.send), Pace(1.0)
swarm = SimpleNamespace(parameters=[torch.full_like(parameter, 0.01) for parameter in trainer.parameters])
sync = strategy_of(manifest)(Participant(run_of(manifest), swarm, trainer.parameters, 4, rounds))
sync.ready(1.0)
sync.synchronise()
assert all(bool((parameter == 0.01).all()) for parameter in trainer.parameters)  # the other peer's value
loop = TrainingLoop(
    link=link,
    pace=pace,
    samples=Samples(),
    trainer=trainer,
    sync=sync,
    rounds=rounds,
    traffic=ByteCounters(),
    step_batch=4,
    limits=ResourceLimits(
        RequestedLimits(), trainer, MicroBatches(DryRun({1: 0.001, 2: 0.001}, 2)), Threads(1), ModelOffload(CPU, list)
    ),
)
loop.run(threading.Event(), link.finish)
assert [(each.samples, each.peers) for each in link.all(ContributionConfirmed)] == [(8, 1)] * 3
assert not link.all(ContributionLost)
assert sync.epoch == 3
assert not all(bool((parameter == 0.01).all()) for parameter in trainer.parameters)
