"""Rounds come first: while one of this peer's averagers sends a round, states are sent at a tenth of their rate.

Between rounds there is no limit but the link's: a newcomer that waits longer trains less. In a round the others would
wait for this peer, and all of them train less.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

AVERAGERS: Final = 2
"""Of the gradients and of the state."""
SHARE: Final = 10
LEAST_PAUSE_SECONDS: Final = 0.25
"""Between two frames: buffers take the first ones of a transfer at once, which says nothing of the link."""
LOOK_SECONDS: Final = 0.1


class Uplink:
    """Whether a round is being sent. Seen in all processes, if made before the fork."""

    def __init__(self) -> None:
        # each process writes its own number only, so that no lock is left behind by one that is killed
        self._rounds = multiprocessing.Array("i", AVERAGERS, lock=False)

    @property
    def busy(self) -> bool:
        return any(self._rounds)

    @contextmanager
    def round(self, averager: int) -> Iterator[None]:
        """While this is open, averager number `averager` sends a round."""
        self._rounds[averager] += 1
        try:
            yield
        finally:
            self._rounds[averager] -= 1


class Pace:
    """Of one transfer: how long it waits after a frame, at most `longest` seconds, as long as a round is sent."""

    def __init__(self, uplink: Uplink, longest: float, least: float = LEAST_PAUSE_SECONDS) -> None:
        self._uplink, self._longest, self._least = uplink, longest, least
        self._frames, self._seconds = 0, 0.0

    @property
    def pause(self) -> float:
        """Seconds after each frame, so that the link is used for a SHAREth of the time."""
        mean = self._seconds / self._frames if self._frames else self._longest
        return min(self._longest, max(self._least, (SHARE - 1) * mean))

    async def taken(self, seconds: float) -> None:
        """A frame was taken within `seconds`; returns when the next one may be sent."""
        self._frames, self._seconds = self._frames + 1, self._seconds + seconds
        until = time.monotonic() + self.pause
        while self._uplink.busy and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110 - another process may end the round
            await asyncio.sleep(min(LOOK_SECONDS, left))
