"""Detection of the computer's sleep: announced by logind, and on all systems from the gap between the clocks.

A time in which skep's processes were stopped counts as well, since nothing was observed then. The session decides what
a wake means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from skep.adapters.sensors.source import Polled
from skep.clocks import since_boot
from skep.core.policy.conditions import Condition, Seen
from skep.core.session import messages as m
from skep.ports import Post

LATE_SECONDS: Final = 10.0
"""How much later than requested a wait may end; even a busy computer is not that late."""
JUMP_SECONDS: Final = 2.0
"""How far the two clocks may drift apart between two looks; only sleep exceeds this."""

LOOK_SECONDS: Final = 2.0
"""The longest wait, so that sleep is noticed soon after its end."""


class SleepWatch(Polled):
    """Implements ports.Sensor without any condition: it posts events from `read` and `wait`."""

    name = "Sleep, by the clocks"
    conditions: Sequence[Condition] = ()

    def __init__(
        self,
        post: Post,
        wait: Callable[[float], None] | None = None,
        *,
        late_seconds: float = LATE_SECONDS,
        clocks: tuple[Callable[[], float], Callable[[], float]] = (since_boot, time.monotonic),
    ) -> None:
        """`wait` waits for at most the given seconds; `clocks` are one that counts sleep and one that does not."""
        super().__init__()
        self._post, self._wait, self._late_seconds = post, wait or super().wait, late_seconds
        self._since_boot, self._monotonic = clocks
        self._sleeping = False
        self._drift: float | None = None
        self._looked: float | None = None

    def read(self) -> Seen:
        self._look(expected=0.0)
        return {}

    def wait(self, seconds: float) -> None:
        seconds = min(seconds, LOOK_SECONDS)
        self._wait(seconds)
        self._look(expected=seconds)

    def about_to_sleep(self) -> None:
        """The system has announced sleep."""
        self._sleeping = True
        self._post(m.AboutToSleep())

    def awake(self) -> None:
        """The system has announced a wake, perhaps after the clocks have shown it."""
        self._look(expected=0.0)
        if self._sleeping:
            self._wake(0.0)

    def _look(self, expected: float) -> None:
        """`expected` is the longest time in seconds since the last look without a sleep."""
        now = self._monotonic()
        drift = self._since_boot() - now
        jump = 0.0 if self._drift is None else drift - self._drift
        late = 0.0 if self._looked is None else now - self._looked - expected
        self._drift, self._looked = drift, now
        slept = (jump if jump > JUMP_SECONDS else 0.0) + (late if late > self._late_seconds else 0.0)
        if slept > 0:
            self._wake(slept)

    def _wake(self, seconds: float) -> None:
        self._sleeping = False
        self._post(m.Slept(seconds))
