"""A manifest's model in training: the dry run that measures its micro-batches, and its loss on held-out samples."""

from __future__ import annotations

import gc
import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import torch

from skep.core.errors import DoesNotFit
from skep.core.project.manifest import Manifest
from skep.core.record.contributions import Evaluation
from skep.core.text import Text
from skep.recipes.contract import NO_FILES, Files
from skep.recipes.registry import open_recipe
from skep.recipes.tensors.batches import Batch
from skep.worker.swarm.plausible import finite, plausible_norm
from skep.worker.training.compute_group import ComputeGroup, total_norm
from skep.worker.training.data import ASK_AGAIN_SECONDS, NotFetched, Samples
from skep.worker.training.device import TrainingDevice
from skep.worker.training.device_errors import MAKE_ROOM, is_lack_of_memory
from skep.worker.training.resource_limits import (
    AWAY_ON_GPU,
    AWAY_ON_PROCESSOR,
    DryRun,
    ModelOffload,
    expected_of_twice,
)

_log = logging.getLogger(__name__)

STEP_BATCHES_PER_EPOCH: Final = 64
LARGEST_STEP_BATCH: Final = 256
DRY_RUNS: Final = 2
"""The fastest of these counts: the first one warms up caches."""
HOPELESS: Final = 2
"""If the first run exceeds the bound by this factor, there is no second: warm caches would not help enough.

A GPU's first micro-batch of all is exempt: it also loads the driver's kernels.
"""
SURELY: Final = 1.25
"""A size that is expected to exceed the bound by this factor is not tried."""
HELD_OUT_SAMPLES: Final = 32
EVALUATION_COST: Final = 100
"""A held-out evaluation is repeated only after this many times the computing it took: at most 1 % of the work."""


def step_batch_for(target_batch_size: int) -> int:
    """Samples per step batch, constant for a run: a power of two, at most 1/64 of the swarm's target."""
    wanted = max(1, min(LARGEST_STEP_BATCH, target_batch_size // STEP_BATCHES_PER_EPOCH))
    return int(2 ** math.floor(math.log2(wanted)))


class Trainer(ComputeGroup):
    """The compute group for the model of a manifest."""

    def __init__(self, manifest: Manifest, device: TrainingDevice, files: Files = NO_FILES) -> None:
        super().__init__(device, open_recipe(manifest.recipe, files))
        self._manifest = manifest
        self.checkpointing = False
        self._norm: torch.Tensor | None = None
        if manifest.activation_checkpointing == "on":
            self.recompute_activations()

    @property
    def away_seconds(self) -> float:
        """Longest time for a micro-batch while this computer is not in use."""
        return AWAY_ON_PROCESSOR if self.kind == "cpu" else AWAY_ON_GPU

    def add_gradients(self, batch: Batch, scale: float) -> float:
        self._norm = None
        return super().add_gradients(batch, scale)

    def measure_gradients(self) -> None:
        """Hand the work of the next `gradients_finite` to the device, without waiting for it."""
        self._norm = total_norm(p.grad for p in self.model.parameters() if p.grad is not None)

    def gradients_finite(self) -> bool:
        """Whether the gradients in `.grad` are finite and plausible."""
        if self._norm is None:
            self.measure_gradients()
        assert self._norm is not None
        norm, self._norm = self._norm, None
        return plausible_norm(norm)

    def parameters_finite(self) -> bool:
        return finite(self.parameters)

    def dry_run(self, step_batch: int, enough: Callable[[], bool] = lambda: True) -> DryRun:
        """Time micro-batches of 1, 2, 4, … samples, up to `step_batch`, the memory, or the longest time while away.

        `enough` says whether the computer has memory left. Leaves arbitrary values in `.grad`. Raises DoesNotFit when
        not even one sample fits.
        """
        away = self.away_seconds
        seconds: dict[int, float] = {}
        size = 1
        while size <= step_batch:
            taken = self._try(size, away) if enough() or not seconds else None
            if taken is None:
                break
            if taken > 2 * seconds.get(size // 2, math.inf):
                # twice the samples cannot take more than twice as long: another program was computing
                taken = min(taken, self._try(size, away) or taken)
            seconds[size] = taken
            if taken > away or expected_of_twice(seconds) > SURELY * away:
                return DryRun(seconds, step_batch, away)
            size *= 2
        if seconds:
            return DryRun(seconds, max(seconds), away)
        if self._manifest.activation_checkpointing == "auto" and not self.checkpointing:
            self.recompute_activations()
            return self.dry_run(step_batch, enough)
        raise DoesNotFit(
            Text("training.not_even_one_sample_fits", title=self._manifest.title, name=self.name),
            MAKE_ROOM,
        )

    def _try(self, size: int, bound: float) -> float | None:
        """Seconds of computing of one micro-batch of `size`, for the time limit `bound`; None if it does not fit."""
        batch = self._recipe.example(size)
        best, loads_kernels = math.inf, size == 1 and self.kind != "cpu"
        try:
            for _ in range(DRY_RUNS):
                begun = self.stopwatch()
                self.add_gradients(batch, 1.0)
                best = min(best, self.stopwatch() - begun)
                if best > HOPELESS * bound and not loads_kernels:
                    break
        except (MemoryError, RuntimeError) as error:
            if is_lack_of_memory(error):
                return None
            raise
        return best

    def offload(self, tensors: Callable[[], Iterable[torch.Tensor]]) -> ModelOffload:
        """What moves `tensors`, and the models of other devices, into RAM and back."""
        return ModelOffload(self._device.device, tensors)

    def recompute_activations(self) -> None:
        super().recompute_activations()
        self.checkpointing = True


@dataclass
class Evaluator:
    """Measures held-out loss one micro-batch at a time, at most as often as EVALUATION_COST allows."""

    trainer: Trainer
    samples: Samples
    size: Callable[[], int]
    _todo: Batch | None = None
    _done: int = 0
    _total: float = 0.0
    _epoch: int = -1
    _spent: float = 0.0
    _next: float = 0.0

    def begin(self, epoch: int) -> None:
        """Start this epoch's evaluation unless one is running, the last was too recent, or its data has not arrived.

        Data that cannot be fetched is asked for again later: training does not need it.
        """
        if self._todo is not None or epoch == self._epoch or time.monotonic() < self._next:
            return
        try:
            self._todo = self.samples.held_out(HELD_OUT_SAMPLES)
        except NotFetched as error:
            _log.warning("the held-out loss is not measured: %s", error)
            self._next = time.monotonic() + ASK_AGAIN_SECONDS
        if self._todo is not None:
            self._done, self._total, self._epoch, self._spent = 0, 0.0, epoch, 0.0

    @property
    def busy(self) -> bool:
        return self._todo is not None

    def go_on(self) -> Evaluation | None:
        """Evaluate one micro-batch; return the result after the last one.

        Without the memory for it, it is given up and begun again later: training needs less, and does not need it.
        """
        assert self._todo is not None
        begun = self.trainer.stopwatch()
        chunk = self._todo.part(self._done, self.size())
        loss = self._loss(chunk)
        if loss is None:
            self._todo, self._epoch = None, -1
            self._next = time.monotonic() + ASK_AGAIN_SECONDS
            gc.collect()
            self.trainer.empty_caches()
            return None
        self._total += loss * len(chunk)
        self._done += len(chunk)
        self._spent += self.trainer.stopwatch() - begun
        if self._done < len(self._todo):
            return None
        self._next = time.monotonic() + EVALUATION_COST * self._spent
        mean = self._total / self._done
        self._todo = None
        return Evaluation(self._epoch, mean) if math.isfinite(mean) else None

    def _loss(self, chunk: Batch) -> float | None:
        """None without the memory for it; what the error held is free then."""
        try:
            return self.trainer.loss(chunk)
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            _log.warning("the held-out loss is not measured: %s", error)
        return None
