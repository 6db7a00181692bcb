"""Allowances of the policy, and the records kept of them: changes and reaction times. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.text import Text

FARTHEST: Final = 1e11
"""The latest end of a pause, in seconds since the epoch; a later one cannot be shown as a date."""


class GpuMemory(StrEnum):
    """How much of the GPU's memory the worker may hold."""

    KEEP = "keep"
    """As much as the worker needs."""
    SHRINK = "shrink"
    """Only the model: caches are emptied, micro-batches are the smallest."""
    RELEASE = "release"
    """None: the model is moved to RAM."""


@dataclass(frozen=True)
class Allowance:
    """What the policy grants now: a compute share 0..1, and the sentence that says why.

    `until` is when the allowance changes by itself, in seconds since the epoch (wall clock), or None. `rule` names the
    rule that won. `present` tells whether a user is or may be present. Without `network` the worker leaves the swarm.
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
    """The allowance in force from `at` on, in wall clock seconds.

    `project` is the id of the project that this computer was in, "" when it was in none.
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
    """How long a reduction of the share took: from its cause (such as an input) to the worker's confirmation.

    `at` is the wall clock time of the confirmation in seconds, `share` the reduced share.
    """

    at: float
    rule: str
    share: float
    seconds: float


@dataclass(frozen=True)
class PauseState:
    """A pause set by the user; `until` is wall clock seconds, or None for a pause until Resume."""

    until: float | None = None
