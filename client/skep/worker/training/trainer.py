"""The model of a manifest in training: micro-batches, the dry run that measures them, and held-out loss.

It must not know about the swarm; it adds gradients to `.grad` and never clears them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import torch

from skep.core.errors import DoesNotFit
from skep.core.project.manifest import Manifest
from skep.core.text import Text
from skep.recipes.contract import NO_FILES, Files
from skep.recipes.registry import open_recipe
from skep.recipes.tensors.batches import Batch
from skep.worker.training.compute_group import ComputeGroup
from skep.worker.training.device import TrainingDevice
from skep.worker.training.device_errors import MAKE_ROOM, is_lack_of_memory
from skep.worker.training.micro_batches import AWAY_ON_GPU, AWAY_ON_PROCESSOR, DryRun, expected_of_twice
from skep.worker.training.precision import all_finite

STEP_BATCHES_PER_EPOCH: Final = 64
LARGEST_STEP_BATCH: Final = 256
DRY_RUNS: Final = 2
"""Of these the quickest counts: the first one warms caches up."""
HOPELESS: Final = 2
"""What takes so many times too long at first, warm caches do not save."""
SURELY: Final = 1.25
"""What is expected to take so many times too long is not tried at all."""


def step_batch_for(target_batch_size: int) -> int:
    """Samples per step batch, constant for a run: a power of two, at most 1/64 of the swarm's target."""
    wanted = max(1, min(LARGEST_STEP_BATCH, target_batch_size // STEP_BATCHES_PER_EPOCH))
    return int(2 ** math.floor(math.log2(wanted)))


class Trainer:
    """The model on its devices."""

    def __init__(self, manifest: Manifest, devices: Sequence[TrainingDevice], files: Files = NO_FILES) -> None:
        self._manifest, self._recipe = manifest, open_recipe(manifest.recipe, files)
        self.group = ComputeGroup(devices, self._recipe)
        self.checkpointing = False
        if manifest.activation_checkpointing == "on":
            self._checkpoint_activations()

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread."""
        return self.group.stopwatch()

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return self.group.parameters

    @property
    def device_name(self) -> str:
        return self.group.name

    def empty_caches(self) -> None:
        """Give back what torch keeps of the device's memory and does not use."""
        self.group.empty_caches()

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """As ComputeGroup.add_gradients."""
        return self.group.add_gradients(batch, scale)

    def loss(self, batch: Batch) -> float:
        """As ComputeGroup.loss."""
        return self.group.loss(batch)

    def gradients_finite(self) -> bool:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return all_finite(gradients)

    def dry_run(self, step_batch: int, enough: Callable[[], bool] = lambda: True) -> DryRun:
        """What micro-batches of 1, 2, 4, … samples take, up to `step_batch`, memory, or what one may take while away.

        `enough` says whether the computer has memory left. Leaves rubbish in `.grad`. Raises DoesNotFit when not even one
        sample fits.
        """
        away = AWAY_ON_PROCESSOR if self.group.kind == "cpu" else AWAY_ON_GPU
        seconds: dict[int, float] = {}
        size = 1
        while size <= step_batch:
            taken = self._try(size, away) if enough() or not seconds else None
            if taken is None:
                break
            if taken > 2 * seconds.get(size // 2, math.inf):
                # twice the samples do not take more than twice as long: something else computed meanwhile
                taken = min(taken, self._try(size, away) or taken)
            seconds[size] = taken
            if taken > away or expected_of_twice(seconds) > SURELY * away:
                return DryRun(seconds, step_batch, away)
            size *= 2
        if seconds:
            return DryRun(seconds, max(seconds), away)
        if self._manifest.activation_checkpointing == "auto" and not self.checkpointing:
            self._checkpoint_activations()
            return self.dry_run(step_batch, enough)
        raise DoesNotFit(
            Text("training.not_even_one_sample_fits", title=self._manifest.title, name=self.group.name),
            MAKE_ROOM,
        )

    def _try(self, size: int, bound: float) -> float | None:
        """Seconds of computing in one micro-batch of `size`, which may take `bound`; None when memory does not suffice."""
        batch = self._recipe.example(size)
        best = math.inf
        try:
            for _ in range(DRY_RUNS):
                begun = self.group.stopwatch()
                self.add_gradients(batch, 1.0)
                best = min(best, self.group.stopwatch() - begun)
                if best > HOPELESS * bound:
                    break
        except (MemoryError, RuntimeError) as error:
            if is_lack_of_memory(error):
                return None
            raise
        return best

    def _checkpoint_activations(self) -> None:
        self.group.recompute_activations()
        self.checkpointing = True
