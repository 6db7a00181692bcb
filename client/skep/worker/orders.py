"""What the engine asks beside the share: who is at the computer, and what may be held of the GPU's memory.

Said by the thread that listens, read by the one that trains. It must not carry anything out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from skep.core.model import GpuMemory

Told = Callable[[GpuMemory, float, str], None]
"""Told what is held no longer, how many seconds after it was asked for, and what had to end first."""


def nobody_listens(_memory: GpuMemory, _seconds: float, _behind: str) -> None:
    """For a worker that nobody asks."""


@dataclass
class Orders:
    """`present` and `memory` as in SetShare; `clock` is monotonic seconds."""

    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    obeyed: Told = nobody_listens
    clock: Callable[[], float] = time.monotonic
    _asked_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.memory is not GpuMemory.KEEP:
            self._asked_at = self.clock()

    def give(self, memory: GpuMemory, *, present: bool) -> bool:
        """From any thread. Returns whether something else may be held of the GPU's memory now."""
        with self._lock:
            self.present = present
            if memory is self.memory:
                return False
            self.memory, self._asked_at = memory, self.clock()
            return True

    def done(self, memory: GpuMemory, behind: str, since: float) -> None:
        """`memory` is obeyed from now on. `behind` is named where it was asked for before `since`, when that ended."""
        with self._lock:
            asked_at = self._asked_at
            if asked_at is None or memory is not self.memory:
                return  # nothing new, or something else was asked for meanwhile
            self._asked_at = None
        self.obeyed(memory, self.clock() - asked_at, behind if asked_at < since else "")


NOTHING_BEHIND: Final = ("", 0.0)
