"""Whether the processes of a worker have grown so much that it should start afresh. Pure.

Every measurement counts for what the worker was asked to do then: with a person present its micro-batches are smaller,
and so is the memory that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MEASUREMENTS: Final = 10
"""Measurements in a row, one a minute: their most is what was used at first, their least what is used for good."""
MEMORY_GROWTH: Final = 1_000_000_000
"""Bytes that the memory may grow in any case; above twice as much at first, half of that."""
THREADS_GROWTH: Final = 500
"""The same for threads, which may double."""


@dataclass(frozen=True)
class Use:
    """What all processes of a worker use together. `memory` is bytes, with shared memory counted once.

    `descriptors` is the largest part, 0..1, that one of them has open of the descriptors that it may open.
    """

    memory: int
    threads: int
    descriptors: float = 0.0

    def exceeds(self, first: Use) -> bool:
        """Whether this is too much for a worker that used `first` when it began."""
        return (
            self.memory > first.memory + max(MEMORY_GROWTH, first.memory // 2)
            or self.threads > first.threads + max(THREADS_GROWTH, first.threads)
            # half of those that were left
            or self.descriptors > (1.0 + first.descriptors) / 2
        )


@dataclass(frozen=True)
class Growth:
    """The latest measurements of one worker, oldest first, all with a person `present` or all without, and the first
    ones for both.
    """

    present: bool = False
    latest: tuple[Use, ...] = ()
    first: Mapping[bool, Use] = field(default_factory=dict)

    def after(self, use: Use, *, present: bool) -> Growth:
        """This, with one measurement more."""
        before = self.latest if present == self.present else ()
        latest = (*before, use)[-MEASUREMENTS:]
        begins = len(latest) == MEASUREMENTS and present not in self.first
        return Growth(present, latest, {**self.first, present: _of(max, latest)} if begins else self.first)

    @property
    def excess(self) -> tuple[Use, Use] | None:
        """What was used at first, and what is used for good now if that is too much; else None."""
        if len(self.latest) < MEASUREMENTS:
            return None
        first, now = self.first[self.present], _of(min, self.latest)
        return (first, now) if now.exceeds(first) else None


def _of(extreme: Callable[..., Any], uses: tuple[Use, ...]) -> Use:
    return Use(
        extreme(use.memory for use in uses),
        extreme(use.threads for use in uses),
        extreme(use.descriptors for use in uses),
    )
