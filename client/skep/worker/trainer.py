"""Forward and backward passes on one device: micro-batches, the dry run that sizes them, and held-out loss.

It must not know about the swarm; it adds gradients to `.grad` and never clears them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Final

import torch

from skep.core.errors import DoesNotFit
from skep.core.manifest import Manifest
from skep.worker.batches import Batch
from skep.worker.device import TrainingDevice
from skep.worker.precision import LossScale, autocast, keep_norms_in_fp32
from skep.worker.recipes import NO_FILES, Files, open_recipe
from skep.worker.recomputing import recompute

MICRO_BATCH_SECONDS: Final = 0.05
"""The longest a micro-batch may take, so that a pause acts at once."""
STEP_BATCHES_PER_EPOCH: Final = 64
LARGEST_STEP_BATCH: Final = 256
DRY_RUNS: Final = 3
"""Of these the quickest counts: the first ones warm caches up."""
MAKE_ROOM: Final = "Close other programs that use its memory, or pick a smaller project."


def step_batch_for(target_batch_size: int) -> int:
    """Samples per step batch, constant for a run: a power of two, at most 1/64 of the swarm's target."""
    wanted = max(1, min(LARGEST_STEP_BATCH, target_batch_size // STEP_BATCHES_PER_EPOCH))
    return int(2 ** math.floor(math.log2(wanted)))


@contextlib.contextmanager
def within_memory(title: str, device: str) -> Iterator[None]:
    """Says in words (DoesNotFit) that memory did not suffice for what is done inside."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        raise DoesNotFit(f"{title} does not fit into the memory of {device}.", MAKE_ROOM) from None


def is_lack_of_memory(error: Exception) -> bool:
    """Whether torch or the system had no memory to give; torch says so in many ways on the processor."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = ("not enough memory", "can't allocate memory", "Cannot allocate memory")
    return any(each in str(error) for each in words)


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

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """Add the gradients of `scale` x mean loss over the samples of `batch` to `.grad`.

        Returns the loss in nats per prediction. One that is not finite says that nothing was added: the loss itself was
        not, or its gradients overflowed in fp16.
        """
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
        with self._autocast():
            return float(self._recipe.loss(self.model, batch.to(self._device.device)))

    def gradients_finite(self) -> bool:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return bool(torch.isfinite(torch.nn.utils.get_total_norm(gradients)))

    def fit_micro_batch(self, step_batch: int) -> int:
        """The largest micro-batch (a power of two up to `step_batch`) within memory and MICRO_BATCH_SECONDS.

        Leaves rubbish in `.grad`. Raises DoesNotFit when not even one sample fits.
        """
        fitting = 0
        size = 1
        while size <= step_batch:
            seconds = self._try(size)
            if seconds is None or (fitting and seconds > MICRO_BATCH_SECONDS):
                break
            fitting, size = size, size * 2
        if fitting:
            return fitting
        if self._manifest.activation_checkpointing == "auto" and not self.checkpointing:
            self._checkpoint_activations()
            return self.fit_micro_batch(step_batch)
        raise DoesNotFit(
            f"Not even one sample of {self._manifest.title} fits into the memory of {self._device.name}.",
            MAKE_ROOM,
        )

    def _try(self, size: int) -> float | None:
        """Seconds of computing in one micro-batch of `size`, or None when memory does not suffice."""
        batch = self._recipe.example(size)
        best = math.inf
        try:
            for _ in range(DRY_RUNS):
                begun = self._device.stopwatch()
                self.add_gradients(batch, 1.0)
                best = min(best, self._device.stopwatch() - begun)
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
