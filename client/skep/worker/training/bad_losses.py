"""Whether many of the latest losses were not finite: nothing of such micro-batches is counted, and a person should know."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem, Text

LATEST: Final = 400
"""Micro-batches that are looked back at."""
MANY: Final = 0.05
"""Part of them from which on it is said; it is over below half of that, so that it is not said again and again."""

USABLE_AGAIN: Final = Problem(Text("training.losses_finite_again"))


class BadLosses:
    """Counts losses as they come; `tell` gets what has changed."""

    def __init__(self, tell: Callable[[WorkerNoticed], object]) -> None:
        self._tell = tell
        self._latest = deque[bool](maxlen=LATEST)
        self._noticed: Problem | None = None

    def count(self, *, finite: bool) -> None:
        """One more loss."""
        self._latest.append(not finite)
        bad = sum(self._latest)
        if self._noticed is None and bad >= MANY * LATEST:
            title = Text("training.losses_not_finite", bad=bad, count=len(self._latest))
            self._noticed = Problem(title, Text("training.such_samples_not_counted"))
            self._tell(WorkerNoticed(self._noticed))
        elif self._noticed is not None and bad < MANY * LATEST / 2:
            self._tell(WorkerNoticed(USABLE_AGAIN, over=self._noticed))
            self._noticed = None
