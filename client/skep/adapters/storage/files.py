"""Atomic writing of small files, and conversion of the system's errors about files.

The message for the user depends on the file, so the caller provides it.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from skep.core.errors import SkepError
from skep.core.text import Text
from skep.files import os_errors as os_errors  # noqa: PLC0414 - for its importers; the worker imports no adapter
from skep.files import replacing, sync, temporary_beside


def unreadable(path: Path, hint: Text, kind: type[SkepError]) -> AbstractContextManager[None]:
    """As `os_errors`, with the message that the file at `path` cannot be read."""
    return os_errors(Text("corpus.cannot_read", path=str(path)), hint, kind)


def atomic_write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace the file at `path`, following no symbolic link; durable when it returns.

    Raises OSError; then the old file is unchanged and no temporary file remains.
    """
    with replacing(path, mode) as temporary:
        temporary.write_bytes(content)


def atomic_create(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create the file at `path` unless it exists: of several concurrent calls, one succeeds.

    Durable when it returns. Raises OSError; then no temporary file remains.
    """
    with temporary_beside(path) as temporary:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        sync(temporary)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)  # unlike a rename, it fails if the file was created meanwhile
    sync(path.parent)


def name_aside(path: Path) -> Path:
    """A free name beside `path` for a damaged file that is kept: its own name with today's date."""
    dated = path.with_name(f"{path.name}.damaged-{datetime.now().astimezone():%Y-%m-%d}")
    names = chain((dated,), (dated.with_name(f"{dated.name}-{number}") for number in count(2)))
    return next(name for name in names if not name.exists())
