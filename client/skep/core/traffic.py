"""A limit on the rate of traffic: the token bucket that decides when the next bytes may move. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MBIT: Final = 125_000
"""Bytes in a megabit."""
BURST_SECONDS: Final = 0.1
"""What a bucket holds that was not used, as seconds of the rate."""
PIECE_BYTES: Final = 16 * 1024
"""Traffic is let through in pieces of this size, so that a large frame does not exceed the rate all at once."""
UPLOAD: Final = "network.upload_mbit"
DOWNLOAD: Final = "network.download_mbit"


class Caps(NamedTuple):
    """Bytes per second; 0 for no limit."""

    upload: float = 0.0
    download: float = 0.0


def caps_of(settings: Mapping[str, Any]) -> Caps:
    return Caps(*(float(settings.get(key, 0.0)) * MBIT for key in (UPLOAD, DOWNLOAD)))


def due(free_at: float, now: float, size: int, rate: float) -> float:
    """When `size` more bytes may have moved at `rate` bytes per second; the bucket's next `free_at`.

    In any time of T seconds, what moves when it is due is at most (T + BURST_SECONDS) * rate, and one piece.
    """
    return max(free_at, now - BURST_SECONDS) + size / rate
