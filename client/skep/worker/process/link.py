"""The two pipes between worker and engine: JSON lines on stdin and stdout.

Libraries may print, so their stdout is redirected to stderr: it would corrupt the messages.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from skep.core.session import wire
from skep.core.session.messages import FromWorker, ToWorker


class Link:
    """Messages to and from the engine.

    `hear` is called in the reading thread for each message before it is queued; `gone` when the engine has closed
    the pipe or sent an invalid message.
    """

    def __init__(self, source: BinaryIO, sink: int) -> None:
        self._source, self._sink = source, sink
        self._writing = threading.Lock()
        self._inbox: queue.SimpleQueue[ToWorker] = queue.SimpleQueue()

    @staticmethod
    def over_stdio() -> Link:
        """Use stdin and stdout for the link; everything printed goes to stderr from now on."""
        sink = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        source = os.fdopen(os.dup(0), "rb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        return Link(source, sink)

    def close_in_children(self) -> None:
        """Close the pipes in forked processes; otherwise the engine would not notice the end of this process."""
        os.register_at_fork(after_in_child=self._close)

    def _close(self) -> None:
        if self._sink >= 0:
            os.close(self._sink)
            os.close(self._source.fileno())
        self._sink = -1  # the descriptors may be reused, here and in this process's children

    def first(self) -> ToWorker | None:
        """The first message, read in the calling thread before `listen`; None when the engine has closed the pipe."""
        line = self._source.readline(wire.LINE_LIMIT + 1)
        return wire.decode_to_worker(line) if line else None

    def listen(self, hear: Callable[[ToWorker], None], gone: Callable[[], None]) -> None:
        """Start the reading thread."""
        threading.Thread(target=self._listen, args=(hear, gone), name="engine", daemon=True).start()

    def _listen(self, hear: Callable[[ToWorker], None], gone: Callable[[], None]) -> None:
        try:
            while line := self._source.readline(wire.LINE_LIMIT + 1):
                message = wire.decode_to_worker(line)
                hear(message)
                self._inbox.put(message)
        except (OSError, wire.WireError) as error:
            # stderr is the worker's log, and the front end reads it; writing fails if that has crashed
            with contextlib.suppress(OSError):
                print(f"the engine's pipe broke: {error}", file=sys.stderr)  # noqa: T201 - as said
        gone()

    def received(self) -> list[ToWorker]:
        """Messages that arrived since the last call, oldest first; never blocks."""
        messages = []
        while not self._inbox.empty():
            messages.append(self._inbox.get())
        return messages

    def send(self, message: FromWorker) -> None:
        """Send a message, from any thread. Errors are ignored: the reading thread notices the end of the engine."""
        line = memoryview(wire.encode(message))
        with self._writing:
            try:
                while line:
                    line = line[os.write(self._sink, line) :]
            except OSError:
                return
