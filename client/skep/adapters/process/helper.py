"""A short-lived process that answers through its stdout, in a run folder of its own, and its whole end."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from skep.adapters.process.process_tree import end_child, remove_run_folder
from skep.adapters.process.start import spawn
from skep.adapters.storage.paths import make_run_folder


@contextlib.contextmanager
def helper(
    command: Sequence[str], log: logging.Logger, end_seconds: float
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes], Path]]:
    """The process, its stdin and stdout, and its run folder. What it writes to stderr goes to `log`.

    When the context is left its stdin is closed, and what is left of its tree after `end_seconds` is killed. Raises
    OSError when it cannot be started, StorageError.
    """
    folder = make_run_folder()
    try:
        process = spawn(command, folder, 1)
    except OSError:
        remove_run_folder(folder)
        raise
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    threading.Thread(target=_note, args=[process.stderr, log], name="helper-log", daemon=True).start()
    try:
        yield process, process.stdin, process.stdout, folder
    finally:
        end_child(process, process.stdin.close, end_seconds, folder)
        remove_run_folder(folder)


def _note(stderr: IO[bytes], log: logging.Logger) -> None:
    try:
        for line in iter(stderr.readline, b""):
            log.info("%s", line.decode(errors="backslashreplace").rstrip())
    except (OSError, ValueError):
        return  # closed, since the process was ended
