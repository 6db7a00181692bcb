"""What a limit on the card's power does: the power that training draws and its samples a second, with it and without."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pynvml
from peers import Peer
from report import Row, say

from skep.adapters.gpu.power_limit import NvidiaLimiter
from skep.core.device import PowerCap
from skep.language.translator import translator

SETTLE_SECONDS: Final = 5.0
"""The driver's figure is a mean over up to 1 s, and the card takes some seconds to follow its limit."""
LOOK_SECONDS: Final = 0.1
OVER: Final = 1.05
"""How far the mean power may be above the limit: NVML's figures are exact to 5 %."""
SAME_WATTS: Final = 0.5


def power_rows(peer: Peer, seconds: float) -> list[Row]:
    """Train at the card's own limit and at one midway between its lowest limit and the power drawn.

    The card's own limit is restored in every case. Raises RuntimeError if the limit cannot be changed.
    """
    limiter = NvidiaLimiter(0)
    own = limiter.look()
    if own.watts is None or own.lowest is None or own.refused:
        raise RuntimeError(translator("en").say(own.refused))
    free, drawn = rate_and_power(peer, seconds)
    wanted = (own.lowest + drawn) / 2
    if wanted <= own.lowest:
        raise RuntimeError(f"training draws {drawn:.0f} W, and the lowest limit is {own.lowest:.0f} W")
    with limited(limiter, own, wanted) as watts:
        capped, drawn_then = rate_and_power(peer, seconds)
    left = limiter.look().watts
    rows = [
        Row("power drawn while training, with the card's own limit", drawn, "W"),
        Row(f"power drawn with a limit of {watts:.0f} W", drawn_then, "W", OVER * watts),
        Row(f"samples/s with a limit of {watts:.0f} W, of those without", capped / free, "times"),
        Row("the card's own limit afterwards, off by", abs((left or 0.0) - own.watts), "W", SAME_WATTS),
    ]
    for row in rows:
        say(f"{row.name}: {row.value:.4g} {row.unit}")
    return rows


@contextmanager
def limited(limiter: NvidiaLimiter, own: PowerCap, watts: float) -> Iterator[float]:
    """Set a limit, and yield the one that the card took."""
    try:
        yield limiter.limit(watts).watts or 0.0
    finally:
        assert own.watts is not None
        limiter.limit(own.watts)


def rate_and_power(peer: Peer, seconds: float) -> tuple[float, float]:
    """Samples a second, and the mean power in watts."""
    over, seen = threading.Event(), list[float]()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            seen.append(pynvml.nvmlDeviceGetPowerUsage(card) / 1000)

    peer.rate(SETTLE_SECONDS)
    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        return peer.rate(seconds), statistics.fmean(seen)
    finally:
        over.set()
        watching.join()
