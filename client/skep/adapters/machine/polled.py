"""What sensors share whose source tells nothing by itself: they are looked at again after a while."""

from __future__ import annotations

import threading


class Polled:
    """`wait` and `close` of ports.Sensor; whoever reads within these bounds ends at once when `closed` is set."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def wait(self, seconds: float) -> None:
        self.closed.wait(seconds)

    def close(self) -> None:
        self.closed.set()
