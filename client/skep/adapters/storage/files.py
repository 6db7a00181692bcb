"""Atomic writing of small files, atomic replacing of folders, and conversion of the system's errors about files.

The message for the user depends on the file, so the caller provides it.
"""

from __future__ import annotations

import contextlib
import shutil
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Final

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


# --- folders that a link leads to, replaced as a whole

LINK_PREFIX: Final = ".link-"
DYING_PREFIX: Final = ".dying-"


def point(link: Path, target: str) -> None:
    """Make `link` lead to `target`, at once and durably. Raises OSError."""
    fresh = link.with_name(f"{LINK_PREFIX}{link.name}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
    sync(link.parent)


def set_aside(folder: Path) -> Path:
    """Rename a folder, if it is there, to the name that it has while it is removed; returns that. Raises OSError."""
    if folder.name.startswith(DYING_PREFIX):
        return folder
    dying = folder.with_name(f"{DYING_PREFIX}{folder.name}")
    if folder.is_dir():
        shutil.rmtree(dying, ignore_errors=True)
        folder.rename(dying)
    return dying


def remove_folder(path: Path) -> None:
    """Rename a folder before it is removed, so that an incomplete one never has its name. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(set_aside(path))
