"""What a child process writes to its stderr, as entries of a rotated log."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

LAST_LINES: Final = 4
LINE_BYTES: Final = 8192
"""A longer line becomes several entries."""
READ_BYTES: Final = 65536


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
            self.end()

    def end(self) -> None:
        if self._rest:
            self._too_long(bytes(self._rest))
            self._rest.clear()


def logged_lines(log: logging.Logger, also: Callable[[str], None] = lambda _line: None) -> Lines:
    """Lines that become entries of `log`; each is passed to `also`."""

    def note(line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip()
        log.info("%s", text)
        also(text)

    return Lines(LINE_BYTES, note, note)


class LogPipe:
    """A context in which a child is started with this as its stderr; a thread logs what it writes, until it has ended.

    Processes that the child has started may write to it as well.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._reading, self._writing = os.pipe()
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        """The last lines, oldest first."""
        self._lines = logged_lines(log, self.last.append)
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
