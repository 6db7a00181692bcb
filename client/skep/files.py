"""Files that are replaced as a whole, and the system's errors about files as skep's."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skep.core.errors import SkepError, StorageError
from skep.core.text import NOTHING, Text

TEMPORARY_MODE: Final = 0o600
"""Of a file that mkstemp makes."""


@contextlib.contextmanager
def os_errors(title: Text, hint: Text = NOTHING, kind: type[SkepError] = StorageError) -> Iterator[None]:
    """Convert an OSError into a `kind` whose title is `title` with the system's message as the argument `reason`."""
    try:
        yield
    except OSError as error:
        raise kind(Text(title.id, **title.args, reason=str(error.strerror or error)), hint) from None


@contextlib.contextmanager
def replacing(path: Path, mode: int = TEMPORARY_MODE) -> Iterator[Path]:
    """An empty file to write; at the end of the context it replaces the one at `path`, durably.

    It follows no symbolic link. If the context is left by an exception, the old file is unchanged and no temporary file
    remains. Raises OSError.
    """
    with temporary_beside(path) as temporary:
        yield temporary
        if mode != TEMPORARY_MODE:  # the worker's sandbox refuses the call
            temporary.chmod(mode)
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)  # otherwise a power cut may undo the rename


@contextlib.contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """An empty file in the folder of `path`, for this user only; removed afterwards. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        os.close(descriptor)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Write what the system holds of a file or folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
