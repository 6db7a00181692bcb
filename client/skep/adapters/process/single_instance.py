"""The lock that allows one skep per home: a file lock that the system releases when its holder ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from skep.core.errors import AlreadyRunning, StorageError
from skep.core.text import NOTHING, Text


def file_lock(path: Path) -> FileLock:
    """A lock that is acquired immediately or fails with filelock.Timeout, and that any thread may release."""
    # the library's fallback for file systems without locks would remain after its process was killed
    return FileLock(path, mode=0o600, blocking=False, thread_local=False, fallback_to_soft=False, on_acquired=_sign)


def _sign(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the lock holds on a full disk too; then its holder is not named
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)


@contextlib.contextmanager
def instance_lock(path: Path) -> Iterator[None]:
    """A context that holds the lock at `path`. The file stays; its content is the last holder's process id.

    Raises AlreadyRunning, which names the process that holds the lock, or StorageError.
    """
    lock = file_lock(path)
    try:
        path.parent.stat()  # filelock would create a missing folder, readable by all users
        lock.acquire()
    except Timeout:
        raise AlreadyRunning(
            Text("single_instance.skep_already_running", parent=str(path.parent), holder=_holder(path)),
            Text("single_instance.use_skep_status_pause_resume"),
        ) from None
    except OSError as error:
        if error.filename is None:
            raise StorageError(
                Text("single_instance.cannot_locked", path=str(path), strerror=str(error.strerror)),
                Text("single_instance.choose_home_disk_computer"),
            ) from None
        raise StorageError(
            Text("single_instance.lock_cannot_opened", path=str(path), strerror=str(error.strerror)),
            Text("single_instance.make_folder_writable_you"),
        ) from None
    try:
        yield
    finally:
        lock.release()


def _holder(path: Path) -> Text:
    number = path.read_bytes()
    return Text("single_instance.process", number=int(number)) if number.isdigit() else NOTHING
