"""What sensors share: opened by the first look, waited for or polled, closed from any thread."""

from __future__ import annotations

import select
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import Final, Protocol

from skep.core.policy.conditions import Condition, Seen

CLOSING_SECONDS: Final = 2.0
"""How long `close` waits for a look under way; its source was cut off by then, or cannot be."""


class HasFile(Protocol):
    def fileno(self) -> int: ...


class Woken(Enum):
    BY_TIME = "by time"
    BY_BELL = "by bell"
    BY_FILE = "by file"


class Wake:
    """Waits for files, until the time is over or another thread rings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._rung = False

    def wait(self, seconds: float, *files: HasFile) -> Woken:
        """What ended the wait; by a file means that one of `files` can be read. What was rung before counts, once."""
        with self._lock:
            if self._rung:
                self._rung = False
                return Woken.BY_BELL
            bell = self._opened()
        ready, _, _ = select.select([bell, *files], [], [], max(0.0, seconds))
        if bell in ready:
            self._hush(bell)
            return Woken.BY_BELL
        return Woken.BY_FILE if ready else Woken.BY_TIME

    def ring(self) -> None:
        with self._lock:
            self._rung = True
            if self._pair is not None:
                with suppress(OSError):
                    self._pair[1].send(b"!")

    def close(self) -> None:
        """What was rung still ends the next wait, which another thread may be about to begin."""
        with self._lock:
            for end in self._pair or ():
                end.close()
            self._pair = None

    def _opened(self) -> socket.socket:
        if self._pair is None:
            # a pair of sockets, because Windows can select nothing else
            self._pair = socket.socketpair()
            for end in self._pair:
                end.setblocking(False)
        return self._pair[0]

    def _hush(self, bell: socket.socket) -> None:
        with self._lock, suppress(OSError):
            self._rung = False
            bell.recv(4096)


class SourceSensor(ABC):
    """Implements ports.Sensor around a source that one thread uses and any thread closes.

    After `close` a `read` opens the source again.
    """

    def __init__(self, name: str, conditions: Sequence[Condition]) -> None:
        self._name, self._conditions = name, tuple(conditions)
        self._busy = threading.Lock()
        self._wake = Wake()

    @property
    def name(self) -> str:
        return self._name

    @property
    def conditions(self) -> Sequence[Condition]:
        return self._conditions

    def read(self) -> Seen:
        with self._busy:
            try:
                return self._look()
            except BaseException:
                self._let_go()  # whatever state it is in, it is not to be gone on with
                raise

    def wait(self, seconds: float) -> None:
        with self._busy:
            self._await(time.monotonic() + seconds)

    def look_again(self) -> None:
        """End a `wait`, from any thread: something that is read with it has changed."""
        self._wake.ring()

    def close(self) -> None:
        self._wake.ring()
        self._cut_off()
        if self._busy.acquire(timeout=CLOSING_SECONDS):
            try:
                self._let_go()
                self._wake.close()
            finally:
                self._busy.release()

    @abstractmethod
    def _look(self) -> Seen:
        """The readings now, in the reading thread."""

    def _await(self, deadline: float) -> None:
        """Return at `deadline`, on the monotonic clock, or when rung; earlier where the source tells something."""
        self._wake.wait(deadline - time.monotonic())

    def _cut_off(self) -> None:  # noqa: B027 - not every source can hang
        """End a look that hangs, from another thread; the source is let go right after."""

    def _let_go(self) -> None:  # noqa: B027 - not every source is held open
        """Close what is open; often nothing is."""


class Polled:
    """`wait` and `close` of ports.Sensor; whoever reads within these bounds ends at once when `closed` is set."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def wait(self, seconds: float) -> None:
        self.closed.wait(seconds)

    def close(self) -> None:
        self.closed.set()
