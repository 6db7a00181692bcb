"""A state that is being loaded, as the training process sees it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Final

from hivemind.utils import MPFuture

from skep.core.errors import SwarmError
from skep.core.text import Problem, Text
from skep.worker.swarm.state.download import COPY_BYTES_PER_SECOND, Arrived, Progress

LOOK_SECONDS: Final = 0.5
RATE_SECONDS: Final = 15.0
SILENCE_SECONDS: Final = 180.0
"""The averager's process does something at least this often, if only giving a donor up; else it hangs."""


@dataclass(frozen=True)
class Loading:
    """How far a state has come: bytes as they are sent, bytes per second, seconds left (None while unknown)."""

    received: int
    total: int
    rate: float = 0.0
    left: float | None = None

    @property
    def fraction(self) -> float:
        return min(1.0, self.received / self.total) if self.total else 0.0

    @property
    def text(self) -> Text:
        total = max(self.total, self.received)
        if not self.received:
            return Text("state.looking_for_donor", total=total)
        if self.left is None:
            return Text("state.loading", received=self.received, total=total)
        return Text("state.loading_at", received=self.received, total=total, rate=int(self.rate), left=self.left)


Tell = Callable[[Loading], None]


def nobody(_loading: Loading) -> None:
    """Nothing is told."""


@dataclass
class Coming:
    """A download of `total` bytes in the averager's process; `give_up` ends it there."""

    future: MPFuture
    progress: Progress
    total: int
    give_up: Callable[[], None]
    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.progress.note(0)
        self.progress.known = 0

    def wait(self, tell: Tell = nobody) -> Arrived | None:
        """Wait for the state, however long it takes; None when no donor has one. `tell` is called twice a second.

        Raises SwarmError when donors sent wrong states only, or the averager's process does nothing any more; any
        error ends the download.
        """
        try:
            while True:
                try:
                    arrived: Arrived | Problem | None = self.future.result(LOOK_SECONDS)
                except TimeoutError:
                    self._look(tell)
                except CancelledError:
                    return None
                else:
                    break
        except BaseException:
            self.give_up()
            raise
        if isinstance(arrived, Problem):
            raise SwarmError(arrived.title, arrived.hint)
        return arrived

    def _look(self, tell: Tell) -> None:
        now = time.monotonic()
        if now - self.progress.stirred_at > SILENCE_SECONDS + 4 * self.total / COPY_BYTES_PER_SECOND:
            raise SwarmError(Text("round.no_peer_swarm_hands_over"), Text("round.skep_tries_again"))
        self._seen.append((now, self.progress.received))
        while self._seen[0][0] < now - RATE_SECONDS or self._seen[0][1] > self._seen[-1][1]:
            self._seen.popleft()
        (since, before), (_, received) = self._seen[0], self._seen[-1]
        rate = (received - before) / (now - since) if now > since else 0.0
        left = max(0.0, (self.total - received) / rate) if rate > 0 else None
        tell(Loading(received, self.total, rate, left))
