"""How many samples of a micro-batch each rank computes: as many as let all be ready at the same time."""

from __future__ import annotations

import math
from typing import Final

FADE: Final = 0.8
"""What a measurement of before keeps of its weight with each new one."""


class Division:
    """The measured speeds of ranks, in samples per second; equal ones until all are known."""

    def __init__(self, ranks: int) -> None:
        self._speeds: list[float | None] = [None] * ranks

    def sizes(self, samples: int) -> list[int]:
        """Samples of each rank, `samples` in all; one at least of each rank if there are so many."""
        known = [speed for speed in self._speeds if speed is not None]
        speeds = known if len(known) == len(self._speeds) else [1.0] * len(self._speeds)
        least = 1 if samples >= len(speeds) else 0
        free = samples - least * len(speeds)
        wanted = [max(0.0, samples * speed / sum(speeds) - least) for speed in speeds]
        exact = [free * each / sum(wanted) if sum(wanted) else 0.0 for each in wanted]
        sizes = [least + math.floor(each) for each in exact]
        # what rounding has left, to those that it took most from; the faster rank first
        order = sorted(range(len(speeds)), key=lambda rank: (math.floor(exact[rank]) - exact[rank], -speeds[rank]))
        for rank in order[: samples - sum(sizes)]:
            sizes[rank] += 1
        return sizes

    def took(self, rank: int, samples: int, seconds: float) -> None:
        """Rank `rank` has computed `samples` in so many seconds."""
        new, before = samples / max(seconds, 1e-9), self._speeds[rank]
        self._speeds[rank] = new if before is None else FADE * before + (1 - FADE) * new
