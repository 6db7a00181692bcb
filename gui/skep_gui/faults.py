"""Errors of skep's own, wherever they happen in this process: caught, logged, told; the app lives on.

What the engine and the errands log with a traceback, and whatever nobody caught in any thread, comes out of one signal.
It must not decide what is done about it.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal

LOGGER: Final = "skep"
LONGEST: Final = 20_000
"""Characters of one report; a traceback's end says the most."""

log = logging.getLogger("skep.gui")


class Faults(QObject):
    happened = Signal(str)
    """What went wrong, with its traceback; emitted in the main thread."""
    _seen = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._seen.connect(self.happened, Qt.ConnectionType.QueuedConnection)
        self._handler = _Listening(self)
        self._hooks = sys.excepthook, threading.excepthook

    def watch(self) -> None:
        """From now until `close`."""
        logging.getLogger(LOGGER).addHandler(self._handler)
        self._hooks = sys.excepthook, threading.excepthook
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread

    def close(self) -> None:
        logging.getLogger(LOGGER).removeHandler(self._handler)
        sys.excepthook, threading.excepthook = self._hooks

    def tell(self, text: str) -> None:
        """From any thread."""
        self._seen.emit(text[-LONGEST:])


class _Listening(logging.Handler):
    def __init__(self, faults: Faults) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._faults.tell(self.format(record))


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log.error("an error that nobody caught", exc_info=(kind, error, trace))


def _uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None:
        name = told.thread.name if told.thread is not None else "?"
        log.error("an error that nobody caught in %s", name, exc_info=told.exc_value)
