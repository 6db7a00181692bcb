"""When a seed starts again: soon after it ended unexpectedly; right after a checkpoint when its processes have grown."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from skep.core.policy.growth import Growth, Use

APART_SECONDS: Final = 3600.0
"""Least time between two renewals: peers behind the seed's relay have to join again."""
CHECKPOINT_SECONDS: Final = 3600.0
"""How long a checkpoint is waited for; the seed starts afresh without one then."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
STEADY_SECONDS: Final = 120.0
"""Once it has run for so long, earlier failures count no more."""


@dataclass
class Pauses:
    """How long to wait before a seed that did not run well is started again: twice as long each time, and not all alike.

    `chance` draws from 0..1.
    """

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    _failures: int = 0
    _since: float = float("inf")

    def started(self) -> None:
        """It runs from now on."""
        self._since = self.clock()

    def next(self) -> float:
        """Seconds until the next start: it has ended, or did not start."""
        if self.clock() - self._since >= STEADY_SECONDS:
            self._failures = 0
        self._failures, self._since = self._failures + 1, float("inf")
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 9))
        return longest * (1.0 + self.chance()) / 2.0


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
