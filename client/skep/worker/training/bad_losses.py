"""Whether many of the latest losses were not finite: nothing of such micro-batches is counted, and a person should know."""

from __future__ import annotations

from collections import deque
from typing import Final

from skep.core.text import Problem, Text
from skep.worker.process.notices import Notices, Tell

LATEST: Final = 400
"""Micro-batches that are looked back at."""
MANY: Final = 0.05
"""Part of them from which on it is said; it is over below half of that, so that it is not said again and again."""

USABLE_AGAIN: Final = Problem(Text("training.losses_finite_again"))


class BadLosses(Notices):
    """Counts losses as they come; `tell` gets what has changed."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._latest = deque[bool](maxlen=LATEST)

    def count(self, *, finite: bool) -> None:
        """One more loss."""
        self._latest.append(not finite)
        bad = sum(self._latest)
        if self.standing is None and bad >= MANY * LATEST:
            title = Text("training.losses_not_finite", bad=bad, count=len(self._latest))
            self.notice(Problem(title, Text("training.such_samples_not_counted")), USABLE_AGAIN)
        elif bad < MANY * LATEST / 2:
            self.notice(None, USABLE_AGAIN)
