"""Ten minutes of samples a second and share, as they were reported. Holds numbers only; draws nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from skep.core.session.phases import SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep_gui.words.now import measured

SPAN: Final = 600.0
"""Seconds that are kept."""


@dataclass(frozen=True)
class Point:
    """`at` is wall clock seconds; `share` 0..1."""

    at: float
    samples_per_second: float
    share: float


class History:
    """Fed with every snapshot; a report is taken once. Old points fall out by time."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=2000)
        self._last: SwarmProgress | None = None

    def see(self, snapshot: Snapshot, now: float) -> None:
        progress = snapshot.progress
        if progress is not None and progress is not self._last:
            share = measured(snapshot)
            share = snapshot.allowance.share if share is None else share
            self.points.append(Point(now, progress.samples_per_second, share))
        self._last = progress
        while self.points and self.points[0].at < now - SPAN:
            self.points.popleft()
