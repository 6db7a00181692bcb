"""When a seed whose processes have grown starts afresh: right after a checkpoint, so that no epoch is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from skep.core.policy.growth import Growth, Use

APART_SECONDS: Final = 3600.0
"""Least time between two renewals: peers behind the seed's relay have to join again."""
CHECKPOINT_SECONDS: Final = 3600.0
"""How long a checkpoint is waited for; the seed starts afresh without one then."""


@dataclass
class Renewal:
    """Judges the measurements of one seed, which restarts now and then."""

    clock: Callable[[], float] = time.monotonic
    _growth: Growth = field(default_factory=Growth)
    _due_at: float | None = None
    _renewed_at: float = float("-inf")

    def started(self) -> None:
        """A new process: what earlier ones used does not count."""
        self._growth, self._due_at = Growth(), None

    def measured(self, use: Use) -> bool:
        """Whether the seed has grown too much, for the first time."""
        self._growth = self._growth.after(use, present=False)
        if self._due_at is not None or not self._growth.excess or self.clock() - self._renewed_at < APART_SECONDS:
            return False
        self._due_at = self.clock()
        return True

    def begins(self, *, saved: bool) -> bool:
        """Whether the seed is to end now; `saved` is whether a checkpoint has just been written."""
        if self._due_at is None or not (saved or self.clock() - self._due_at >= CHECKPOINT_SECONDS):
            return False
        self._due_at, self._renewed_at = None, self.clock()
        return True
