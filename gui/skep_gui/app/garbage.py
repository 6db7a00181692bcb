"""Runs Python's cyclic garbage collector in Qt's thread only.

CPython collects in whichever thread allocates. A Qt object in a reference cycle that is found in the thread of the
engine or of a background task is destroyed there, which Qt allows in its own thread only: the process ends with SIGSEGV.
"""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

EVERY_MS: Final = 5000


class GarbageCollector(QTimer):
    """Create it in Qt's thread; from then on no other thread collects. It is for the rest of the process."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, interval=EVERY_MS)
        gc.disable()
        self.timeout.connect(collect)
        self.start()


def collect() -> None:
    """Collect each generation that is due by the interpreter's own thresholds."""
    for generation, (count, threshold) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)):
        if count <= threshold:
            return
        gc.collect(generation)
