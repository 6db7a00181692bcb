"""Ways in which a file of a home may be damaged."""

import contextlib
import ctypes
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

CAPABILITIES_VERSION: Final = 0x20080522
DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2


def halved(file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2])


def random_bytes(file: Path) -> None:
    file.write_bytes(random.Random(file.name).randbytes(max(64, file.stat().st_size)))


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def unreadable(file: Path) -> None:
    file.chmod(0)


def folder_in_its_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: Final[tuple[Callable[[Path], None], ...]] = (halved, random_bytes, emptied, unreadable, folder_in_its_place)


def left(file: Path) -> bytes | None:
    """What is at its path now; None for a folder or nothing."""
    if not file.is_file():
        return None
    mode = file.stat().st_mode
    file.chmod(0o600)
    try:
        return file.read_bytes()
    finally:
        file.chmod(mode)


@contextlib.contextmanager
def as_a_user() -> Iterator[None]:
    """Files that their permissions close are closed to this thread and those it starts, for root too."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    before, without = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    without[:] = before
    without[0] &= ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    assert libc.capset(header, without) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
