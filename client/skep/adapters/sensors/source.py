"""Base classes of sensors: opened by the first reading, waited for or polled, closed from any thread."""

from __future__ import annotations

import select
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from skep.core.policy.conditions import Condition, Reading, Seen
from skep.core.text import Text, verbatim

CLOSING_SECONDS: Final = 2.0
"""How long `close` waits for a running reading after its source was cut off."""


class HasFile(Protocol):
    def fileno(self) -> int: ...


class Woken(Enum):
    BY_TIME = "by time"
    BY_BELL = "by bell"
    BY_FILE = "by file"


class Wake:
    """Waits for files, a timeout, or a call of `ring` by another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._rung = False

    def wait(self, seconds: float, *files: HasFile) -> Woken:
        """Return what ended the wait; a file means that one of `files` is readable. An earlier ring counts, once."""
        with self._lock:
            if self._rung:
                self._rung = False
                return Woken.BY_BELL
            if self._pair is None:
                # a pair of sockets, because select supports nothing else on Windows
                self._pair = socket.socketpair()
                for end in self._pair:
                    end.setblocking(False)
            bell = self._pair[0]
        ready, _, _ = select.select([bell, *files], [], [], max(0.0, seconds))
        if bell in ready:
            with self._lock, suppress(OSError):
                self._rung = False
                bell.recv(4096)
            return Woken.BY_BELL
        return Woken.BY_FILE if ready else Woken.BY_TIME

    def ring(self) -> None:
        with self._lock:
            self._rung = True
            if self._pair is not None:
                with suppress(OSError):
                    self._pair[1].send(b"!")

    def close(self) -> None:
        """An earlier ring still ends the next wait, which another thread may be about to begin."""
        with self._lock:
            for end in self._pair or ():
                end.close()
            self._pair = None


class NoAnswer(Exception):
    """`reason` is the end of a sentence that says why."""

    def __init__(self, reason: Text) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Absent(NoAnswer):
    """The source does not exist here."""


class Silent(NoAnswer):
    """The source exists and gives no answer, or an invalid one."""


class Refused(Silent):
    """It answered `asked` with an error called `name`; the connection to it is good."""

    def __init__(self, asked: str, name: str) -> None:
        super().__init__(verbatim(f"{asked}: {name}"))
        self.name = name


Found = TypeVar("Found")


class Connection(HasFile, Protocol):
    """What a line opens. Used by one thread; only `cut` may be called from another one."""

    def ask(self, question: Callable[[Self], Found]) -> Found:
        """The result of `question`. Raises Absent, Silent."""

    def news(self) -> Sequence[Any]:
        """Notifications since the last call, oldest first. Does not wait. Raises Silent."""

    def cut(self) -> None:
        """Abort a running question."""

    def close(self) -> None: ...


Open = TypeVar("Open", bound=Connection)


class Line(Generic[Open]):
    """A connection that is opened when first needed, and again after a failure."""

    def __init__(self, connect: Callable[[], Open], prepare: Callable[[Open], object] = lambda _opened: None) -> None:
        """`connect` raises Absent, Silent; `prepare` is the first question over each connection."""
        self._connect, self._prepare = connect, prepare
        self.opened: Open | None = None

    def ask(self, question: Callable[[Open], Found]) -> Found:
        """The result of `question` over the connection. Raises Absent, Silent."""
        try:
            return self._open().ask(question)
        except Refused:
            raise
        except Silent:
            self.drop()
            raise

    def _open(self) -> Open:
        if self.opened is None:
            fresh = self._connect()
            try:
                fresh.ask(self._prepare)
            except BaseException:
                fresh.close()
                raise
            self.opened = fresh
        return self.opened

    def drop(self) -> None:
        opened, self.opened = self.opened, None
        if opened is not None:
            opened.close()


class SourceSensor(ABC):
    """Implements ports.Sensor around sources that one thread uses and any thread closes.

    After `close` a `read` opens the sources again.
    """

    name: str
    conditions: Sequence[Condition]

    def __init__(self, *lines: Line[Any]) -> None:
        self._lines = lines
        self._busy = threading.Lock()
        self._wake = Wake()

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: whether a connection is open over which changes arrive."""
        return any(line.opened is not None for line in self._lines)

    def read(self) -> Seen:
        with self._busy:
            try:
                return self._look()
            except BaseException:
                self._let_go()  # its state is unknown, so it is not used any more
                raise

    def wait(self, seconds: float) -> None:
        with self._busy:
            self._await(time.monotonic() + seconds)

    def look_again(self) -> None:
        """End a `wait`, from any thread, because something that `read` includes has changed."""
        self._wake.ring()

    def close(self) -> None:
        self._wake.ring()
        for line in self._lines:
            if (opened := line.opened) is not None:
                opened.cut()
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
        """Return at `deadline` (monotonic clock), after a ring, or when a source has news or failed."""
        while True:
            opened = [line.opened for line in self._lines if line.opened is not None]
            try:
                heard = [self._is_news(each) for connection in opened for each in connection.news()]
            except Silent:
                self._let_go()
                return
            if any(heard) or self._wake.wait(deadline - time.monotonic(), *opened) is not Woken.BY_FILE:
                return

    def _is_news(self, _told: Any) -> bool:
        """Process a notification; return whether it ends a wait."""
        return True

    def _let_go(self) -> None:
        """Close open sources."""
        for line in self._lines:
            line.drop()


class LineSensor(SourceSensor, Generic[Open]):
    """Reports one condition by a question over one line."""

    def __init__(self, line: Line[Open]) -> None:
        super().__init__(line)
        self._line = line

    def _look(self) -> Seen:
        (condition,) = self.conditions
        return {condition: self._reading()}

    def _reading(self) -> Reading[Any]:
        try:
            return self._line.ask(self._ask)
        except Absent as error:
            return self._absent(error.reason)
        except Silent as error:
            return self._silent(error.reason)

    @abstractmethod
    def _ask(self, source: Open) -> Reading[Any]:
        """Raises Absent, Silent."""

    @abstractmethod
    def _absent(self, reason: Text) -> Reading[Any]:
        """The reading if there is no source."""

    @abstractmethod
    def _silent(self, reason: Text) -> Reading[Any]:
        """The reading if the source does not answer."""


class Polled:
    """`wait` and `close` of ports.Sensor; `closed` ends a wait immediately."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def wait(self, seconds: float) -> None:
        self.closed.wait(seconds)

    def close(self) -> None:
        self.closed.set()


class Asked(Polled):
    """Implements ports.Sensor with a function that always returns quickly."""

    def __init__(self, name: str, condition: Condition, ask: Callable[[], Reading[Any]]) -> None:
        super().__init__()
        self.name, self.conditions = name, (condition,)
        self._ask = ask

    def read(self) -> Seen:
        return {condition: self._ask() for condition in self.conditions}
