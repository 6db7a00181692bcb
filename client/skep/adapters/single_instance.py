"""Makes sure that one skep at a time works in a home, by a lock that the system lets go of when its holder dies.

It must not be taken for a way to talk to the holder; that is control_socket.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from skep.core.errors import AlreadyRunning, StorageError


class InstanceLock:
    """A context manager that holds the lock at `path`. The file stays; its content is the last holder's process id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Raises AlreadyRunning, which names the process that holds the lock, or StorageError."""
        try:
            # Python opens files close-on-exec, so no worker can keep the lock after our death
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageError(
                f"The lock {self._path} cannot be opened: {error.strerror}.", "Make the folder writable for you."
            ) from None
        try:
            self._lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._descriptor is not None:
            # the file is not removed: somebody may have opened it already and be about to lock it
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"skep is already running in {self._path.parent}{_holder(descriptor)}.",
                "Use it with skep status, pause, resume, share and leave, or choose another folder with --home.",
            ) from None
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be locked: {error.strerror}.", "Choose a home on a disk of this computer."
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _holder(descriptor: int) -> str:
    number = os.pread(descriptor, 20, 0)
    return f" (process {int(number)})" if number.isdigit() else ""
