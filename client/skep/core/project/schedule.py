"""The learning rate as a function of the epoch alone, so that every peer and every newcomer agrees on it. Pure."""

from __future__ import annotations

import math
from typing import Final

from skep.core.project.types import Schedule, ScheduleKind

EXPONENTIAL_END: Final = 0.01
"""What an exponential schedule has fallen to at its last epoch."""


def factor(schedule: Schedule, epoch: int) -> float:
    """What the base learning rate is multiplied by in `epoch` (0, 1, …).

    Warm-up rises linearly over `warmup_epochs`, from 1/(n+1) to just below 1. After it, "constant" stays at 1; the
    others fall until `total_epochs` and stay there: "linear" and "cosine" to 0, "exponential" by the same part in every
    epoch to EXPONENTIAL_END.
    """
    if epoch < schedule.warmup_epochs:
        return (epoch + 1) / (schedule.warmup_epochs + 1)
    length = max(1, schedule.total_epochs - schedule.warmup_epochs)
    return _after_warmup(schedule.kind, min(1.0, (epoch - schedule.warmup_epochs) / length))


def _after_warmup(kind: ScheduleKind, done: float) -> float:
    match kind:
        case "linear":
            return 1.0 - done
        case "cosine":
            return (1.0 + math.cos(math.pi * done)) / 2.0
        case "exponential":
            return float(EXPONENTIAL_END**done)
        case "constant":
            return 1.0
