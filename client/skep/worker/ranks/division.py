"""How many samples of a micro-batch each rank computes: as many as let all be ready at the same time, within its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

FADE: Final = 0.8
"""What a measurement of before keeps of its weight with each new one."""


FADE_BUSY: Final = 0.95
"""The same, of the time that ranks were busy."""


class Division:
    """The measured speeds of ranks, in samples per second; equal ones until all are known."""

    def __init__(self, ranks: int) -> None:
        self._speeds: list[float | None] = [None] * ranks
        self._seconds, self._longest = [0.0] * ranks, 0.0
        self._owed = [0.0] * ranks
        """Samples, or parts of one, that a limited rank got too few of until now."""

    def sizes(self, samples: int, parts: Sequence[float] = ()) -> list[int]:
        """Samples of each rank, `samples` in all; one at least of each rank if there are so many.

        With `parts`, a rank computes that part 0..1 of the time of one that has 1, over several micro-batches, and may
        get no sample.
        """
        computing = [not any(parts) or part > 0 for part in parts or [1.0] * len(self._speeds)]
        measured = all(speed is not None for speed, counts in zip(self._speeds, computing, strict=True) if counts)
        speeds = [speed if measured and speed is not None else 1.0 for speed in self._speeds]
        if parts and any(parts) and min(parts) < 1.0:
            return self._limited(samples, [speed * part for speed, part in zip(speeds, parts, strict=True)])
        self._owed = [0.0] * len(speeds)
        least = 1 if samples >= len(speeds) else 0
        free = samples - least * len(speeds)
        wanted = [max(0.0, samples * speed / sum(speeds) - least) for speed in speeds]
        exact = [free * each / sum(wanted) if sum(wanted) else 0.0 for each in wanted]
        # what rounding has left, to those that it took most from; the faster rank first
        return [least + each for each in _rounded(exact, free, speeds)]

    def _limited(self, samples: int, weights: Sequence[float]) -> list[int]:
        exact = [samples * each / sum(weights) for each in weights]
        due = [max(0.0, each + owed) if each else 0.0 for each, owed in zip(exact, self._owed, strict=True)]
        if not any(due):
            due = exact
        sizes = _rounded([samples * each / sum(due) for each in due], samples, weights)
        self._owed = [owed + each - size for owed, each, size in zip(self._owed, exact, sizes, strict=True)]
        return sizes

    def took(self, rank: int, samples: int, seconds: float) -> None:
        """Rank `rank` has computed `samples` in so many seconds."""
        new, before = samples / max(seconds, 1e-9), self._speeds[rank]
        self._speeds[rank] = new if before is None else FADE * before + (1 - FADE) * new

    def passed(self, seconds: Sequence[float]) -> None:
        """In one micro-batch the ranks have computed for so many seconds."""
        self._longest = FADE_BUSY * self._longest + max(seconds)
        self._seconds = [FADE_BUSY * before + new for before, new in zip(self._seconds, seconds, strict=True)]

    @property
    def busy(self) -> list[float]:
        """The part 0..1 of the group's time of computing in which each rank computed of late."""
        return [each / self._longest for each in self._seconds] if self._longest else [1.0] * len(self._seconds)


def _rounded(exact: Sequence[float], total: int, order: Sequence[float]) -> list[int]:
    """Whole numbers close to `exact` that add up to `total`; of two equally close ones that with the higher `order`."""
    sizes = [math.floor(each) for each in exact]
    first = sorted(range(len(exact)), key=lambda rank: (sizes[rank] - exact[rank], -order[rank]))
    for rank in first[: total - sum(sizes)]:
        sizes[rank] += 1
    return sizes
