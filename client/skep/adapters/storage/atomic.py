"""Writes small files so that a crash leaves the old content or the new one, never half of it.

It must not translate errors: what a full disk means depends on the file, which the caller knows.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def atomic_write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace the file at `path`, following no symbolic link; durable when it returns.

    Raises OSError, and then the old file is untouched and nothing else is left behind.
    """
    with _written_beside(path, content, mode) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


def atomic_create(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Make the file at `path`, or leave it alone where there is one: of several at the same time, one wins.

    Durable when it returns. Raises OSError, and then nothing is left behind.
    """
    with _written_beside(path, content, mode) as temporary, contextlib.suppress(FileExistsError):
        path.hardlink_to(temporary)  # unlike a rename, it fails where somebody else was quicker
    sync_folder(path.parent)


@contextlib.contextmanager
def _written_beside(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    """A temporary file with this content, safely on the disk; gone afterwards."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Without this a power cut may undo the rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
