"""Watches that other programs always find memory free in this computer. It must not know what ours is used for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import psutil

from skep.core.errors import DeviceError
from skep.core.text import Text

GB: Final = 1_000_000_000
LOOK_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 10.0
"""How long smaller micro-batches may take to help."""


def available() -> int:
    """Bytes that programs can have without swapping."""
    return int(psutil.virtual_memory().available)


class MemoryWatch:
    """`leave` are the bytes to keep free; 0 watches nothing. `look` says what is, `clock` is monotonic seconds."""

    def __init__(
        self, leave: int, look: Callable[[], int] = available, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leave, self._look, self._clock = leave, look, clock
        self._looked = -LOOK_SECONDS
        self._short_since: float | None = None

    def enough(self) -> bool:
        """Whether there is enough left now."""
        return not self._leave or self._look() >= self._leave

    @property
    def short(self) -> bool:
        """Whether it was found short, as last looked; looks about once a second.

        Raises DeviceError when it has been short for longer than PATIENCE_SECONDS.
        """
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if self.enough():
                self._short_since = None
            elif self._short_since is None:
                self._short_since = now
        if self._short_since is not None and now - self._short_since > PATIENCE_SECONDS:
            raise self.shortage()
        return self._short_since is not None

    def shortage(self) -> DeviceError:
        """In words."""
        return DeviceError(
            Text("memory_watch.less_than_gb_computer_memory", leave=self._leave / GB),
            Text("memory_watch.skep_tries_again_later_close", setting="memory.leave_ram_gb"),
        )
