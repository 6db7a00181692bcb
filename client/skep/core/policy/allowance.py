"""What the policy grants, and what is kept of it: allowances, changes, reaction times. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skep.core.text import Text


class GpuMemory(StrEnum):
    """What the worker may hold of the GPU's memory."""

    KEEP = "keep"
    """All that it needs."""
    SHRINK = "shrink"
    """Nothing beyond the model itself: caches emptied, the smallest micro-batches."""
    RELEASE = "release"
    """Nothing: the model waits in RAM."""


@dataclass(frozen=True)
class Allowance:
    """What the policy grants now: compute share 0..1, and the sentence that says why.

    `until` is when the allowance changes by itself, in seconds since the epoch (wall clock), or None. `rule` names the rule
    that won. `present` tells that somebody is, or may be, at this computer. Without `network` the worker is out of the swarm.
    """

    share: float
    reason: Text
    until: float | None = None
    rule: str = "away"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    network: bool = True


@dataclass(frozen=True)
class Change:
    """The allowance as it was from a moment on; `at` is wall clock seconds.

    `project` is the id of the project that this computer was in, "" from when it was in none.
    """

    at: float
    project: str
    share: float
    rule: str
    reason: Text
    memory: GpuMemory = GpuMemory.KEEP
    network: bool = True


@dataclass(frozen=True)
class Reaction:
    """How long giving back took: from what called for it (an input, say) to the worker's word that it obeys.

    `at` is wall clock seconds of that word, `share` what was given back to.
    """

    at: float
    rule: str
    share: float
    seconds: float


@dataclass(frozen=True)
class PauseState:
    """The person's own pause; `until` is wall clock seconds, or None: until Resume."""

    until: float | None = None
