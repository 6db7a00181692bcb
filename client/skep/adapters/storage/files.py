"""Small files, written so that a crash leaves the old content or the new one; and the system's errors about any file.

Nothing here decides what an error means to a person: that depends on the file, so the caller brings the sentence.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from skep.core.errors import SkepError, StorageError
from skep.core.text import NOTHING, Text


def unreadable(path: Path, hint: Text, kind: type[SkepError]) -> AbstractContextManager[None]:
    """Says that the file at `path` cannot be read, as `os_errors` says it."""
    return os_errors(Text("corpus.cannot_read", path=str(path)), hint, kind)


@contextlib.contextmanager
def os_errors(title: Text, hint: Text = NOTHING, kind: type[SkepError] = StorageError) -> Iterator[None]:
    """Turns an OSError within into a `kind`: its title is `title` with the system's own words as the argument `reason`."""
    try:
        yield
    except OSError as error:
        raise kind(Text(title.id, **title.args, reason=str(error.strerror or error)), hint) from None


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
        path.hardlink_to(temporary)  # unlike a rename, it fails where the file was made meanwhile
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
