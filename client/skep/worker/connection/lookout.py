"""Looks that are repeated during a run, each in a thread of its own, and what they tell the user."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import hivemind

from skep.core.text import Problem, Text
from skep.worker.process.notices import Notices, Tell

LOOK_SECONDS: Final = 15.0
ANSWER_SECONDS: Final = 10.0
CUT_OFF_SECONDS: Final = 60.0
"""How long nobody may be connected before that is told; connections again within seconds are usual."""

CUT_OFF: Final = Problem(Text("link.connected_to_nobody"), Text("link.connects_again_by_itself"))
CONNECTED: Final = Problem(Text("link.connected_again"))


class Lookout(Notices, ABC):
    """Calls `look` every `seconds`, until `end`. `tell` gets what has changed."""

    def __init__(self, tell: Tell, seconds: float) -> None:
        super().__init__(tell)
        self._seconds = seconds
        self._over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._look_again_and_again, name=type(self).__name__, daemon=True).start()

    def end(self) -> None:
        """From now on nobody is asked."""
        self._over.set()

    def _look_again_and_again(self) -> None:
        while not self._over.wait(self._seconds):
            with contextlib.suppress(Exception):  # a DHT that has ended or hangs is another watch's business
                self.look()

    @abstractmethod
    def look(self) -> None:
        """Ask, and tell what has changed. Raises what asking raises."""


class LinkWatch(Lookout):
    """Tells when this computer is connected to no other peer any more, seeds included, and when it is again.

    It then trains alone, and what it has computed when an epoch ends is not confirmed. `connected` returns how many peers are connected.
    """

    def __init__(
        self,
        connected: Callable[[], int],
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(tell, LOOK_SECONDS)
        self._connected, self._clock = connected, clock
        self._connected_at: float | None = None

    def look(self) -> None:
        if self._connected():
            self._connected_at = self._clock()
            self.notice(None, CONNECTED)
        elif self._connected_at is not None and self._clock() - self._connected_at >= CUT_OFF_SECONDS:
            self.notice(CUT_OFF, CONNECTED)


def connected(dht: hivemind.DHT) -> Callable[[], int]:
    """What LinkWatch asks the processes of `dht`. Raises TimeoutError when they do not answer."""
    return lambda: dht.run_coroutine(_connected, return_future=True).result(ANSWER_SECONDS)


# runs in the DHT's process, which finds it by name: it was forked after this module was imported


async def _connected(_dht: hivemind.DHT, node: Any) -> int:
    return len(await asyncio.wait_for(node.p2p.list_peers(), ANSWER_SECONDS))
