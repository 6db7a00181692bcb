"""What a child process writes to its stderr, as entries of a rotated log.

Other peers can make it write what they want, as often as they want, since hivemind logs what they send.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

LAST_LINES: Final = 4
LINE_BYTES: Final = 8192
"""A longer line becomes several entries."""
READ_BYTES: Final = 65536
MINUTE: Final = 60.0
MOST_A_MINUTE: Final = 2000
"""Entries of one child. Of further ones, the LAST_OF_FLOOD are logged at the end of the minute, or of the child."""
LAST_OF_FLOOD: Final = 50
_VISIBLE: Final = {code: f"\\x{code:02x}" for code in (*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0xA0))}
"""Control characters, which a terminal that shows the log would obey, as text; a tab stays."""


class Lines:
    """Splits a stream of bytes into lines; one of `limit` bytes or more goes to `too_long` in pieces."""

    def __init__(self, limit: int, each: Callable[[bytes], None], too_long: Callable[[bytes], None]) -> None:
        self._limit, self._each, self._too_long = limit, each, too_long
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._each(bytes(self._rest + line))
            self._rest.clear()
        self._rest += rest
        if len(self._rest) >= self._limit:
            self._pass_on_rest()

    def end(self) -> None:
        self._pass_on_rest()

    def _pass_on_rest(self) -> None:
        if self._rest:
            self._too_long(bytes(self._rest))
            self._rest.clear()


class LoggedLines(Lines):
    """Lines that become entries of `log`, not too many; each is passed to `also`."""

    def __init__(
        self,
        log: logging.Logger,
        also: Callable[[str], None] = lambda _line: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(LINE_BYTES, self._note, self._note)
        self._log, self._also, self._clock = log, also, clock
        self._until, self._count = 0.0, 0
        self._left_out: deque[str] = deque(maxlen=LAST_OF_FLOOD)

    def end(self) -> None:
        super().end()
        self._tell_left_out()

    def _note(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip().translate(_VISIBLE)
        self._also(text)
        now = self._clock()
        if now >= self._until:
            self._tell_left_out()
            self._until, self._count = now + MINUTE, 0
        self._count += 1
        if self._count <= MOST_A_MINUTE:
            self._log.info("%s", text)
        else:
            self._left_out.append(text)

    def _tell_left_out(self) -> None:
        count = self._count - MOST_A_MINUTE - len(self._left_out)
        if count > 0:
            self._log.info("%d more lines were left out here", count)
        while self._left_out:
            self._log.info("%s", self._left_out.popleft())
        self._count = min(self._count, MOST_A_MINUTE)


class LogPipe:
    """A context in which a child is started with this as its stderr; a thread logs what it writes, until it has ended.

    Processes that the child has started may write to it as well.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._reading, self._writing = os.pipe()
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        """The last lines, oldest first."""
        self._lines = LoggedLines(log, self.last.append)
        self._thread = threading.Thread(target=self._read, name="child-log", daemon=True)

    def fileno(self) -> int:
        return self._writing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._writing)
        self._thread.start()

    def wait(self, within: float) -> None:
        """Return when everything is logged that was written, or after `within` seconds."""
        self._thread.join(within)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._reading, READ_BYTES):
                self._lines.feed(chunk)
            self._lines.end()
        finally:
            os.close(self._reading)
