"""How many samples a second this peer really trains, and will at another share: what the swarm is told.

Measured over computing and naps; rounds, state downloads and waiting for data are left out, as hivemind's own estimate
leaves them out. That one forgets so slowly that it tells the old rate for dozens of step batches after a change of share.
"""

from __future__ import annotations

import math
from typing import Final

MEMORY_SECONDS: Final = 10.0
"""Computing so long ago counts for 1/e of what is computed now."""
GAP_SECONDS: Final = 5.0
"""A turn that takes this much longer than it computes was interrupted: the computer slept."""


class Throughput:
    """Sums that fade: samples, seconds by the clock on the wall without naps, and seconds of computing."""

    def __init__(self) -> None:
        self._samples = self._wall = self._spent = 0.0

    def turn(self, samples: int, wall: float, spent: float) -> None:
        """A turn of the loop trained `samples` in `wall` seconds without its nap, of which it computed for `spent`."""
        if wall - spent > GAP_SECONDS:
            return
        fade = math.exp(-wall / MEMORY_SECONDS)
        self._samples = self._samples * fade + samples
        self._wall = self._wall * fade + wall
        self._spent = self._spent * fade + spent

    def rate(self, share: float) -> float | None:
        """Samples a second at `share`, or None before anything was trained."""
        if self._samples <= 0.0 or self._wall <= 0.0:
            return None
        if share <= 0.0:
            return 0.0
        return self._samples / (self._wall + self._spent * (1.0 - share) / share)
