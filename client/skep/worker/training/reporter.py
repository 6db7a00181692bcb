"""What the front end is told while this computer trains: progress about once a second, whatever training waits for.

It must not compute nor decide; it reads what the others count. Reports come from a thread of its own too, since the
training thread may stand in a round for half a minute.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from skep.core.session.messages import WorkerProgress
from skep.core.session.phases import SwarmProgress
from skep.worker.process.link import Link
from skep.worker.swarm.network import ByteCounters
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import SyncStrategy
from skep.worker.training.data import Samples
from skep.worker.training.pace import Pace

REPORT_SECONDS: Final = 1.0
RATE_SECONDS: Final = 10.0
LOSSES: Final = 32
"""Micro-batches whose mean loss is shown."""


@dataclass
class Reporter:
    """Reports every `every` seconds; `heavy` says whether a single sample takes too long while somebody is there."""

    link: Link
    pace: Pace
    samples: Samples
    sync: SyncStrategy
    rounds: Rounds
    traffic: ByteCounters
    heavy: Callable[[], bool]
    every: float = REPORT_SECONDS
    _losses: deque[float] = field(default_factory=lambda: deque(maxlen=LOSSES))
    _trained: deque[tuple[float, int]] = field(default_factory=deque)
    _told_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def trained(self, loss: float, samples: int) -> None:
        """A micro-batch was counted; `loss` in nats per token."""
        with self._lock:
            self._losses.append(loss)
            self._trained.append((time.monotonic(), samples))

    def tell(self, *, at_once: bool = False) -> None:
        """Report, unless the last report is not that old. From any thread."""
        with self._lock:
            now = time.monotonic()
            if at_once or now - self._told_at >= self.every:
                self._told_at = now
                self._send(now)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Meanwhile, report when `every` seconds have gone by without a word from the training thread."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="reports", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(REPORT_SECONDS)

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(max(0.05, self._told_at + self.every - time.monotonic())):
            self.tell()

    def _send(self, now: float) -> None:
        # held, so that a round that begins meanwhile does not give these samples the next contribution's name
        with self.rounds.held():
            samples = self.rounds.grown
            growing = self.rounds.growing if samples else ""
            progress = self.progress(now)
            self.link.send(WorkerProgress(progress, growing, samples, self.samples.position, self.heavy()))

    def progress(self, now: float) -> SwarmProgress:
        """What a front end shows. `now` is monotonic seconds."""
        swarm, pace = self.sync.progress, self.pace
        return SwarmProgress(
            epoch=self.sync.epoch,
            peers=self.rounds.last_peers,
            loss=sum(self._losses) / len(self._losses) if self._losses else None,
            samples_per_second=self._rate(now),
            share_asked=pace.share,
            share_measured=pace.measured,
            samples_accumulated=swarm.samples,
            target_batch_size=swarm.target,
            compute_seconds=pace.compute_seconds,
            nap_seconds=pace.nap_seconds,
            waiting_seconds=pace.waiting_seconds,
            bytes_sent=self.traffic.sent.value,
            bytes_received=self.traffic.received.value,
        )

    def _rate(self, now: float) -> float:
        while self._trained and self._trained[0][0] < now - RATE_SECONDS:
            self._trained.popleft()
        return sum(size for _, size in self._trained) / RATE_SECONDS
