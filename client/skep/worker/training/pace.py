"""The engine's requests to the training thread: the share, kept by naps, and the limit on GPU memory.

The actual share and rate are measured here, and whether the computer slept. torch is not imported, so that the worker
handles messages before torch is loaded.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from skep.clocks import since_boot
from skep.core.policy.allowance import GpuMemory

WINDOW_SECONDS: Final = 60.0
SLICE_SECONDS: Final = 0.1
"""Longest nap between two synchronisations with the swarm, so that a slowed peer does not delay the others."""
GAP_SECONDS: Final = 2.0
"""A nap that lasts this much longer than it should was interrupted: the computer slept."""
PIECES: Final = 20
"""Pieces of computing after which the time of a long one counts for less than half."""

Obeyed = Callable[[float, float, str], None]
"""Called with the share that applies from now on, its delay in seconds, and what had to end first."""


@dataclass
class SwarmWait:
    """What the training thread waits for in the swarm; code that blocks for longer sets `behind` to its name."""

    behind: str = ""


class Pace:
    """Shared by the training thread (compute, nap) and the thread that handles the engine's messages (set_share).

    `stopwatch` gives seconds of computing by the calling thread, depending on the device. A new share takes effect
    immediately while the training thread waits for data or naps, and otherwise after the current piece of computing or
    the round.
    """

    def __init__(
        self,
        share: float,
        stopwatch: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        obeyed: Obeyed = lambda _share, _seconds, _behind: None,
    ) -> None:
        self._share, self.stopwatch, self._clock, self._obeyed = share, stopwatch, clock, obeyed
        self._busy = False
        self._changes = 0
        self._typical = 0.0
        self.spent = 0.0
        """Seconds of the last piece of computing."""
        self.slept: Callable[[], float] = lambda: 0.0
        """Seconds that the computer slept so far, as SleepDetector.slept."""
        self._changed = threading.Condition()
        self._changed_at: float | None = None
        self._owed = 0.0
        self._recent: deque[tuple[float, float, float]] = deque()
        self.compute_seconds = self.nap_seconds = self.waiting_seconds = 0.0
        self.throughput = Throughput()

    @property
    def share(self) -> float:
        return self._share

    def rate(self) -> float | None:
        """Samples per second at the requested share, or None before anything was trained."""
        return self.throughput.rate(self._share)

    def set_share(self, share: float) -> None:
        """Request a share, from any thread. Ends a nap immediately."""
        with self._changed:
            if share != self._share:
                self._share, self._changed_at, self._owed = share, self._clock(), 0.0
                self._wake()
                if not self._busy:
                    self._obey("")

    def nudge(self) -> None:
        """Signal that something other than the share was requested, from any thread. Ends a nap's slice, and a wait."""
        with self._changed:
            self._wake()

    def _wake(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def _obey(self, behind: str) -> None:
        changed_at, self._changed_at = self._changed_at, None
        if changed_at is not None:
            self._obeyed(self._share, self._clock() - changed_at, behind)

    @contextmanager
    def computing(self) -> Iterator[bool]:
        """Measure a piece of computing, and add the nap that it requires.

        Yields whether it may be done: a pause may have been requested, and reported as in effect, since the caller
        checked.
        """
        with self._changed:
            self._busy = allowed = self._share > 0.0
        begun, slept_before = self.stopwatch(), self.slept()
        try:
            yield allowed
        finally:
            self._computed(self.stopwatch() - begun, slept=self.slept() > slept_before)

    def _computed(self, spent: float, *, slept: bool) -> None:
        with self._changed:
            self._busy = False
            self.spent = spent = self._honest(spent, slept=slept)
            self.compute_seconds += spent
            if 0.0 < self._share < 1.0:
                self._owed += spent * (1.0 - self._share) / self._share
            self._remember(spent, 0.0)
            self._obey("")

    def _honest(self, spent: float, *, slept: bool) -> float:
        """`spent`, or at most the usual time of such a piece if the computer slept meanwhile."""
        if slept:  # by how much depends on the stopwatch: one that shows processor time stood still
            return min(spent, self._typical)
        self._typical = max(spent, self._typical * (1 - 1 / PIECES))
        return spent

    @contextmanager
    def in_swarm(self) -> Iterator[SwarmWait]:
        """Measure time with the swarm, which is neither computing nor a nap. A share requested meanwhile applies
        afterwards.

        Rounds, the optimizer's step and downloads of the state end first; the yielded object takes their name.
        """
        wait = SwarmWait()
        with self._changed:
            self._busy = True
        try:
            with self.waiting():
                yield wait
        finally:
            with self._changed:
                self._busy = False
                self._obey(wait.behind)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Measure time that is neither computing nor a nap."""
        begun = self._clock()
        try:
            yield
        finally:
            self.waiting_seconds += self._clock() - begun

    def nap(self) -> bool:
        """Sleep one slice of the nap that is due; True while more remains. A change of share ends it."""
        with self._changed:
            if self._owed <= 0.0:
                return False
            begun, share, changes = self._clock(), self._share, self._changes
            asked = min(self._owed, SLICE_SECONDS)
            self._changed.wait_for(lambda: self._changes != changes, asked)
            napped = self._clock() - begun
            if napped > asked + GAP_SECONDS:
                napped = asked
            self.nap_seconds += napped
            if self._share == share:
                self._owed -= napped
            self._remember(0.0, napped)
            return self._owed > 0.0

    def wait_for_change(self, within: float) -> None:
        """While paused: return when something else is requested, or after `within` seconds."""
        with self._changed:
            changes = self._changes
            self._changed.wait_for(lambda: self._changes != changes, within)

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


MEMORY_SECONDS: Final = 10.0
"""Time constant: computing this long ago has the weight 1/e."""


class Throughput:
    """Exponentially decaying sums: samples, seconds of wall time without naps, and seconds of computing."""

    def __init__(self) -> None:
        self._samples = self._wall = self._spent = 0.0

    def turn(self, samples: int, wall: float, spent: float) -> None:
        """Add a turn of the loop: `samples` in `wall` seconds without its nap, of which `spent` were computing."""
        fade = math.exp(-wall / MEMORY_SECONDS)
        self._samples = self._samples * fade + samples
        self._wall = self._wall * fade + wall
        self._spent = self._spent * fade + spent

    def rate(self, share: float) -> float | None:
        """Samples per second at `share`, or None before anything was trained."""
        if self._samples <= 0.0 or self._wall <= 0.0:
            return None
        if share <= 0.0:
            return 0.0
        return self._samples / (self._wall + self._spent * (1.0 - share) / share)


BEAT_SECONDS: Final = 1.0
SLEEP_SECONDS: Final = 5.0
"""A longer time between two looks counts as sleep; even on a busy computer a beat is not that late."""


class SleepDetector:
    """Detects times in which this process did not run: the computer slept, or the process was stopped.

    How long a micro-batch or a round takes is of no concern: while they run, the thread of `watching` looks at the clock
    every `beat` seconds, and only what stops all threads delays it. That includes a stop of the processes, in which
    both of the system's clocks go on, and holds on systems without a clock that excludes sleep.
    """

    def __init__(self, clock: Callable[[], float] = since_boot, beat: float = BEAT_SECONDS) -> None:
        self._clock, self._beat = clock, beat
        self._lock = threading.Lock()
        self._looked, self._slept = clock(), 0.0

    def slept(self) -> float:
        """Seconds of all sleeps until now; from any thread. While nobody calls it and nothing watches, all is sleep."""
        with self._lock:
            now = self._clock()
            passed, self._looked = now - self._looked, now
            if passed > SLEEP_SECONDS:
                self._slept += passed
            return self._slept

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which a thread looks at the clock."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), name="sleep", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(self._beat):
            self.slept()


Told = Callable[[GpuMemory, float, str], None]
"""Called with the memory limit that applies from now on, its delay in seconds, and what had to end first."""


@dataclass
class RequestedLimits:
    """The engine's latest request; `present`, `memory` and `ceilings` as in SetShare, `clock` in monotonic seconds."""

    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    ceilings: Mapping[str, float] = field(default_factory=dict)
    obeyed: Told = lambda _memory, _seconds, _behind: None
    clock: Callable[[], float] = time.monotonic
    _asked_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.memory is not GpuMemory.KEEP:
            self._asked_at = self.clock()

    def give(self, memory: GpuMemory, *, present: bool) -> bool:
        """Set the request, from any thread. Returns whether the limit on the GPU's memory changed."""
        with self._lock:
            self.present = present
            if memory is self.memory:
                return False
            self.memory, self._asked_at = memory, self.clock()
            return True

    def part_of(self, device: str, share: float) -> float:
        """Which part 0..1 of the time in which all devices compute, at `share`, `device` may compute itself."""
        ceiling = self.ceilings.get(device, 1.0)
        return ceiling / share if ceiling < share else 1.0

    def done(self, memory: GpuMemory, behind: str, since: float) -> None:
        """`memory` applies now. `behind` is reported if the request came before `since`, the time when that ended."""
        with self._lock:
            asked_at = self._asked_at
            if asked_at is None or memory is not self.memory:
                return  # nothing new, or something else was requested meanwhile
            self._asked_at = None
        self.obeyed(memory, self.clock() - asked_at, behind if asked_at < since else "")
