"""Clocks that the standard library names differently on each system."""

from __future__ import annotations

import time


def since_boot() -> float:
    """Seconds on a clock that includes the computer's sleep and cannot be set. Its zero has no meaning."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    # macOS counts sleep in this clock and not in time.monotonic(); Windows counts it in both
    return time.clock_gettime(time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else time.monotonic()
