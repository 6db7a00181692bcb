"""The duty cycle: how long to nap after each piece of computing, and what share that really was.

Share means compute / (compute + nap); waiting for the swarm or for data is neither. On the processor, compute is the
training thread's own processor time, so that time the system gave to other programs is not counted as ours; elsewhere
it is the wall time of the synchronised work. It must not know what is computed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

WINDOW_SECONDS: Final = 60.0
SLICE_SECONDS: Final = 0.1
"""Longest nap between two looks at the swarm, so that a slowed peer does not keep the others waiting."""


Obeyed = Callable[[float, float], None]
"""Told of the share that is obeyed from now on, and how many seconds after it was asked for."""


class Pace:
    """Shared by the training thread (compute, nap) and the thread that hears from the engine (set_share).

    `stopwatch` gives seconds of computing by the calling thread; the device that was picked has its own. A new share is
    obeyed at once while nothing is computed, whatever the training thread waits for, and else after the piece in hand.
    """

    def __init__(
        self,
        share: float,
        stopwatch: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        obeyed: Obeyed = lambda _share, _seconds: None,
    ) -> None:
        self._share, self.stopwatch, self._clock, self._obeyed = share, stopwatch, clock, obeyed
        self._computes = False
        self._changed = threading.Condition()
        self._changed_at: float | None = None
        self._owed = 0.0
        self._recent: deque[tuple[float, float, float]] = deque()
        self.compute_seconds = self.nap_seconds = self.waiting_seconds = 0.0

    @property
    def share(self) -> float:
        return self._share

    def set_share(self, share: float) -> None:
        """From any thread: the share asked from now on. Ends a nap at once."""
        with self._changed:
            if share != self._share:
                self._share, self._changed_at, self._owed = share, self._clock(), 0.0
                self._changed.notify_all()
                if not self._computes:
                    self._obey()

    def _obey(self) -> None:
        changed_at, self._changed_at = self._changed_at, None
        if changed_at is not None:
            self._obeyed(self._share, self._clock() - changed_at)

    @contextmanager
    def computing(self) -> Iterator[bool]:
        """Measure a piece of computing, and owe the nap that goes with it.

        Yields whether it may be done: a pause may have come, and been reported as obeyed, since the caller looked.
        """
        with self._changed:
            self._computes = allowed = self._share > 0.0
        begun = self.stopwatch()
        try:
            yield allowed
        finally:
            self._computed(self.stopwatch() - begun)

    def _computed(self, spent: float) -> None:
        with self._changed:
            self._computes = False
            self.compute_seconds += spent
            if 0.0 < self._share < 1.0:
                self._owed += spent * (1.0 - self._share) / self._share
            self._remember(spent, 0.0)
            self._obey()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Measure time that is neither computing nor a nap."""
        begun = self._clock()
        try:
            yield
        finally:
            self.waiting_seconds += self._clock() - begun

    def nap(self) -> bool:
        """Sleep a slice of what is owed; True while more is owed. A change of share ends it."""
        with self._changed:
            if self._owed <= 0.0:
                return False
            begun, share = self._clock(), self._share
            self._changed.wait_for(lambda: self._share != share, min(self._owed, SLICE_SECONDS))
            napped = self._clock() - begun
            self.nap_seconds += napped
            if self._share == share:
                self._owed -= napped
            self._remember(0.0, napped)
            return self._owed > 0.0

    def wait_for_change(self, within: float) -> None:
        """While paused: return when the share changes, or after `within` seconds."""
        with self._changed:
            share = self._share
            self._changed.wait_for(lambda: self._share != share, within)

    @property
    def measured(self) -> float | None:
        """Share of the last minute, or None before anything was computed."""
        with self._changed:
            oldest = self._clock() - WINDOW_SECONDS
            while self._recent and self._recent[0][0] < oldest:
                self._recent.popleft()
            compute = sum(entry[1] for entry in self._recent)
            nap = sum(entry[2] for entry in self._recent)
        return compute / (compute + nap) if compute > 0 else None

    def _remember(self, compute: float, nap: float) -> None:
        now = self._clock()
        if self._recent and now - self._recent[-1][0] < 1.0:
            at, earlier_compute, earlier_nap = self._recent[-1]
            self._recent[-1] = (at, earlier_compute + compute, earlier_nap + nap)
        else:
            self._recent.append((now, compute, nap))
