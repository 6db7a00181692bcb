"""What is there on a bus, looked up now and then: asking for it each time would cost more than it tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from skep.adapters.activity.bus import Absent, Bus, Target

LOOK_AGAIN_SECONDS: Final = 30.0


class Recently:
    """Remembers what `find` found on a bus; another bus, or half a minute, and it is looked up anew."""

    def __init__(self, find: Callable[[Bus], Sequence[Target]]) -> None:
        self._find = find
        self._at: float = 0.0
        self._bus: Bus | None = None
        self._found: Sequence[Target] = ()

    def on(self, bus: Bus) -> Sequence[Target]:
        """Raises what `find` raises."""
        now = time.monotonic()
        if bus is not self._bus or now - self._at >= LOOK_AGAIN_SECONDS:
            self._bus = None
            self._found = self._find(bus)
            self._bus, self._at = bus, now
        return self._found

    def forget(self) -> None:
        """Something of it is gone: look it up at the next use."""
        self._bus = None

    def ask(self, bus: Bus, question: Callable[[Sequence[Target]], bool]) -> bool:
        """What the question finds about those there; asked again of a new list when one of them is gone. Raises Absent."""
        known = self.on(bus)
        try:
            return question(known)
        except Absent:
            if not known:
                raise
            self.forget()
            return question(self.on(bus))
