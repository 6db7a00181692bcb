"""The loss on held-out samples, measured between training steps. It must not train, nor say when there is time for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skep.core.record.contributions import Evaluation
from skep.recipes.tensors.batches import Batch
from skep.worker.training.data import Samples
from skep.worker.training.trainer import Trainer

HELD_OUT_SAMPLES: Final = 32
EVALUATION_COST: Final = 100
"""A held-out evaluation is repeated only after this many times the computing it took: at most 1 % of the work."""


@dataclass
class Evaluator:
    """Measures held-out loss a micro-batch at a time, and not too often."""

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
        """Start this epoch's evaluation, unless one is under way, the last was too recent, or its data is on its way."""
        if self._todo is not None or epoch == self._epoch or time.monotonic() < self._next:
            return
        self._todo = self.samples.held_out(HELD_OUT_SAMPLES)
        if self._todo is not None:
            self._done, self._total, self._epoch, self._spent = 0, 0.0, epoch, 0.0

    @property
    def busy(self) -> bool:
        return self._todo is not None

    def go_on(self) -> Evaluation | None:
        """One micro-batch; the evaluation after its last."""
        assert self._todo is not None
        begun = self.trainer.stopwatch()
        chunk = self._todo.part(self._done, self.size())
        self._total += self.trainer.loss(chunk) * len(chunk)
        self._done += len(chunk)
        self._spent += self.trainer.stopwatch() - begun
        if self._done < len(self._todo):
            return None
        self._next = time.monotonic() + EVALUATION_COST * self._spent
        mean = self._total / self._done
        self._todo = None
        return Evaluation(self._epoch, mean) if math.isfinite(mean) else None
