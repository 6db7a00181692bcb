"""Whether a transfer of a state is so slow that it has to make way for another."""

from __future__ import annotations

from typing import Final

LEAST_BYTES_PER_SECOND: Final = 20_000
"""Of a transfer that keeps its place, 0.16 Mbit/s: with the lowest limit on what is sent, two transfers have more."""
SPAN_SECONDS: Final = 60.0


class Speed:
    """Of one transfer: judged over a minute at first, and later over half of the time that it has taken by then.

    So what is slow for some minutes costs nothing that took an hour, and nobody is slow for long.
    """

    is_slow = False

    def __init__(self) -> None:
        self._before = self._seconds = 0.0
        self._bytes = 0

    def took(self, size: int, seconds: float) -> None:
        """`size` bytes have moved within `seconds`."""
        self._bytes += size
        self._seconds += seconds
        if self._seconds >= max(SPAN_SECONDS, self._before / 2):
            self.is_slow = self._bytes < LEAST_BYTES_PER_SECOND * self._seconds
            self._before += self._seconds
            self._bytes, self._seconds = 0, 0.0
