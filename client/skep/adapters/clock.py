"""The system's clocks as a port. Nobody but adapters and the worker reads time elsewhere."""

from __future__ import annotations

import time


class SystemClock:
    """Implements ports.Clock."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
