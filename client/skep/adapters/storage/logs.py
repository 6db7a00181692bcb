"""Logs of one home in one folder: rotated, readable by this user only, and redacted by `core.redact`.

The root logger is not changed: it belongs to the program that embeds skep. Errors of writing a log (a full disk) are
ignored, so that logging does not stop the program.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from skep.core.redact import redact

SIZE: Final = 1024 * 1024
"""Bytes in one file at most."""
OLDER: Final = 4
"""How many earlier files are kept beside the current one."""

PACKAGE: Final = "skep"
"""skep's modules use loggers below this name."""


def open_log(folder: Path, name: str) -> logging.Logger:
    """A separate log, `name`.log in `folder`; both are created with the first entry. It does not propagate."""
    log = logging.Logger(name, logging.INFO)  # noqa: LOG001 - one made by getLogger would be shared between homes
    log.addHandler(_Rotated(folder, name))
    return log


@contextlib.contextmanager
def collect_logs(folder: Path, name: str) -> Iterator[logging.Logger]:
    """A context in which skep's modules log to `name`.log in `folder` only."""
    log = logging.getLogger(PACKAGE)
    handler = _Rotated(folder, name)
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield log
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate
        handler.close()


class _Redacted(logging.Formatter):
    """Masks the finished entry, so that arguments and tracebacks are covered too."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self._home = os.path.expanduser("~")  # noqa: PTH111 - as text, and "~" itself when there is none

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._home if self._home != "~" else "")


class _Rotated(RotatingFileHandler):
    """Opens and closes the file for each entry: entries are rare, and two processes can share a log this way."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / f"{name}.log", maxBytes=SIZE, backupCount=OLDER, encoding="utf-8", delay=True)
        self.setFormatter(_Redacted())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        finally:
            stream, self.stream = self.stream, None
            if stream is not None:
                with contextlib.suppress(OSError):  # it could not be written; see above
                    stream.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Does nothing: logging would print a traceback to the terminal."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors="backslashreplace")
