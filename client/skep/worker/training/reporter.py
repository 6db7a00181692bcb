"""A loop's reports to the engine: about once a second, from the training thread or, while that is busy, another one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from skep.core.session import messages
from skep.core.session.phases import SwarmProgress, Wait
from skep.worker.connection.network import ByteCounters
from skep.worker.process.link import Link
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import SyncStrategy
from skep.worker.training.data import Samples
from skep.worker.training.pace import Pace
from skep.worker.training.resource_limits import ResourceLimits

REPORT_SECONDS: Final = 1.0
RATE_SECONDS: Final = 10.0
LOSSES: Final = 32
"""Micro-batches whose mean loss is shown."""


class Reported(Protocol):
    """What a report is made of: the parts of a TrainingLoop."""

    link: Link
    pace: Pace
    samples: Samples
    sync: SyncStrategy
    rounds: Rounds
    traffic: ByteCounters
    limits: ResourceLimits
    waits_for: Wait


@dataclass
class Reporter:
    """Reports of a loop, every `every` seconds."""

    loop: Reported
    every: float = REPORT_SECONDS
    _losses: deque[float] = field(default_factory=lambda: deque(maxlen=LOSSES))
    _trained: deque[tuple[float, int]] = field(default_factory=deque)
    _told_at: float = 0.0
    _handed_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def trained(self, loss: float, samples: int) -> None:
        """A micro-batch was counted; `loss` in nats per token."""
        with self._lock:
            self._losses.append(loss)
            self._trained.append((time.monotonic(), samples))

    def handed_over(self) -> None:
        """A step batch is complete. The first is reported at once: these are the first samples that count."""
        first, self._handed_over = not self._handed_over, True
        if first:
            self.tell(at_once=True)

    def tell(self, *, at_once: bool = False) -> None:
        """Report, unless the last report is more recent than `every` seconds. From any thread."""
        with self._lock:
            now = time.monotonic()
            if at_once or now - self._told_at >= self.every:
                self._told_at = now
                self._send(now)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """A context in which a thread reports when the training thread has not done so for `every` seconds."""
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
        # held, so that a round that begins meanwhile does not assign these samples to the next contribution
        with self.loop.rounds.held():
            samples = self.loop.rounds.grown
            growing = self.loop.rounds.growing if samples else ""
            progress = self.progress(now)
            self.loop.link.send(
                messages.WorkerProgress(
                    progress,
                    growing,
                    samples,
                    self.loop.samples.position,
                    self.loop.limits.heavy,
                    self.loop.waits_for,
                    tuple(self.loop.limits.group.devices),
                )
            )

    def progress(self, now: float) -> SwarmProgress:
        """The progress that front ends show. `now` is monotonic seconds."""
        swarm, pace = self.loop.sync.progress, self.loop.pace
        while self._trained and self._trained[0][0] < now - RATE_SECONDS:
            self._trained.popleft()
        return SwarmProgress(
            epoch=self.loop.sync.epoch,
            peers=self.loop.rounds.last_peers,
            loss=sum(self._losses) / len(self._losses) if self._losses else None,
            samples_per_second=sum(size for _, size in self._trained) / RATE_SECONDS,
            share_asked=pace.share,
            share_measured=pace.measured,
            samples_accumulated=swarm.samples,
            target_batch_size=swarm.target,
            seconds_left=swarm.seconds_left,
            compute_seconds=pace.compute_seconds,
            nap_seconds=pace.nap_seconds,
            waiting_seconds=pace.waiting_seconds,
            bytes_sent=self.loop.traffic.sent.value,
            bytes_received=self.loop.traffic.received.value,
        )
