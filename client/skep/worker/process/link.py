"""The two pipes to the engine: JSON lines in, JSON lines out, with stdout kept away from everybody else.

Libraries may print; they must never be able to speak for the worker. It must not interpret messages.
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
    the pipe or spoken nonsense.
    """

    def __init__(self, source: BinaryIO, sink: int) -> None:
        self._source, self._sink = source, sink
        self._writing = threading.Lock()
        self._inbox: queue.SimpleQueue[ToWorker] = queue.SimpleQueue()

    @staticmethod
    def over_stdio() -> Link:
        """Take stdin and stdout for the link; what anyone prints goes to stderr from now on."""
        sink = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        source = os.fdopen(os.dup(0), "rb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        return Link(source, sink)

    def close_in_children(self) -> None:
        """Forked processes must not hold the pipes open, or the engine would never see the end of us."""
        os.register_at_fork(after_in_child=self._close)

    def _close(self) -> None:
        if self._sink >= 0:
            os.close(self._sink)
            os.close(self._source.fileno())
        self._sink = -1  # the numbers may belong to something else soon, here and in our own children

    def first(self) -> ToWorker | None:
        """The first message, read in the calling thread before `listen`; None when the engine is gone."""
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
            # stderr is the worker's log, and ends in the front end too, which may be what broke
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
        """Send a message, from any thread. An engine that is gone is noticed by the reading side."""
        line = memoryview(wire.encode(message))
        with self._writing:
            try:
                while line:
                    line = line[os.write(self._sink, line) :]
            except OSError:
                return
