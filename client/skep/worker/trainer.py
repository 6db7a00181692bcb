"""Forward and backward passes on one device: micro-batches, the dry run that measures them, and held-out loss.

It must not know about the swarm; it adds gradients to `.grad` and never clears them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final

import torch

from skep.core.errors import DoesNotFit
from skep.core.manifest import Manifest
from skep.worker.batches import Batch
from skep.worker.device import TrainingDevice
from skep.worker.faults import MAKE_ROOM, is_lack_of_memory
from skep.worker.precision import LossScale, autocast, keep_norms_in_fp32
from skep.worker.recipes import NO_FILES, Files, open_recipe
from skep.worker.recomputing import recompute
from skep.worker.sizes import AWAY_ON_GPU, AWAY_ON_PROCESSOR, DryRun, expected_of_twice

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
    """The model on its device."""

    def __init__(self, manifest: Manifest, device: TrainingDevice, files: Files = NO_FILES) -> None:
        self._manifest, self._device = manifest, device
        self._recipe = open_recipe(manifest.recipe, files)
        self.model = self._recipe.build().to(device.device)
        self.model.train()
        if device.precision != "fp32":
            keep_norms_in_fp32(self.model)
        self.loss_scale = LossScale() if device.precision == "fp16" else None
        self.checkpointing = False
        if manifest.activation_checkpointing == "on":
            self._checkpoint_activations()

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread."""
        return self._device.stopwatch()

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return [p for p in self.model.parameters() if p.requires_grad]

    @property
    def device_name(self) -> str:
        return self._device.name

    def empty_caches(self) -> None:
        """Give back what torch keeps of the device's memory and does not use."""
        self._device.empty_caches()

    def tensors(self) -> Iterable[torch.Tensor]:
        """All that the model itself holds on its device: parameters, their gradients, buffers."""
        gradients = (p.grad for p in self.model.parameters() if p.grad is not None)
        return chain(self.model.parameters(), gradients, self.model.buffers())

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """Add the gradients of `scale` x mean loss over the samples of `batch` to `.grad`.

        Returns the loss in nats per prediction. One that is not finite says that nothing was added: the loss itself was
        not, or its gradients overflowed in fp16.
        """
        with self._device.low_priority():
            with self._autocast():
                loss = self._recipe.loss(self.model, batch.to(self._device.device))
            value = float(loss.detach())
            if math.isfinite(value) and not self._backward(loss, scale):
                value = math.nan
        self._device.synchronize()
        return value

    def _backward(self, loss: torch.Tensor, scale: float) -> bool:
        """Whether the gradients of `scale` x `loss` were added to `.grad`."""
        if self.loss_scale is not None:
            return self.loss_scale.add_gradients(loss, scale, self.parameters)
        (loss * scale).backward()
        return True

    @torch.no_grad()
    def loss(self, batch: Batch) -> float:
        """Mean loss over `batch`, in nats per prediction, without gradients."""
        with self._device.low_priority(), self._autocast():
            return float(self._recipe.loss(self.model, batch.to(self._device.device)))

    def gradients_finite(self) -> bool:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return bool(torch.isfinite(torch.nn.utils.get_total_norm(gradients)))

    def dry_run(self, step_batch: int, enough: Callable[[], bool] = lambda: True) -> DryRun:
        """What micro-batches of 1, 2, 4, … samples take, up to `step_batch`, memory, or what one may take while away.

        `enough` says whether the computer has memory left. Leaves rubbish in `.grad`. Raises DoesNotFit when not even one
        sample fits.
        """
        away = AWAY_ON_PROCESSOR if self._device.device.type == "cpu" else AWAY_ON_GPU
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
            f"Not even one sample of {self._manifest.title} fits into the memory of {self._device.name}.",
            MAKE_ROOM,
        )

    def _try(self, size: int, bound: float) -> float | None:
        """Seconds of computing in one micro-batch of `size`, which may take `bound`; None when memory does not suffice."""
        batch = self._recipe.example(size)
        best = math.inf
        try:
            for _ in range(DRY_RUNS):
                begun = self._device.stopwatch()
                self.add_gradients(batch, 1.0)
                best = min(best, self._device.stopwatch() - begun)
                if best > HOPELESS * bound:
                    break
        except (MemoryError, RuntimeError) as error:
            if is_lack_of_memory(error):
                return None
            raise
        return best

    def _checkpoint_activations(self) -> None:
        recompute(self.model)
        self.checkpointing = True

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        return autocast(self._device.precision, self._device.device.type)
