"""The learning rate as a function of the epoch alone, so that every peer and every newcomer agrees on it. Pure."""

from __future__ import annotations

import math

from skep.core.manifest_types import Schedule


def factor(schedule: Schedule, epoch: int) -> float:
    """What the base learning rate is multiplied by in `epoch` (0, 1, …).

    Warm-up rises linearly over `warmup_epochs`, from 1/(n+1) to just below 1. After it, "constant" stays at 1;
    "linear" and "cosine" fall to 0 at `total_epochs` and stay there.
    """
    if epoch < schedule.warmup_epochs:
        return (epoch + 1) / (schedule.warmup_epochs + 1)
    if schedule.kind == "constant":
        return 1.0
    length = max(1, schedule.total_epochs - schedule.warmup_epochs)
    done = min(1.0, (epoch - schedule.warmup_epochs) / length)
    return 1.0 - done if schedule.kind == "linear" else (1.0 + math.cos(math.pi * done)) / 2.0
