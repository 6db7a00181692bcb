"""The rows that are left in the pages of an SQLite file, for a file that SQLite itself cannot read any more.

The leaves of SQLite's tables hold whole rows, so each can be read without the rest of the file; see
https://sqlite.org/fileformat2.html. A page may also hold an earlier state of a row, from before a change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

Value = None | int | float | str
Row = tuple[int, tuple[Value, ...]]
"""The row's number, and its values, in which None stands for the number."""

PAGE: Final = 4096
"""Bytes in a page of SQLite's; the ledger keeps this default."""
_MAGIC: Final = b"SQLite format 3\0"
_VERSION_AT: Final = 60
_LEAF: Final = 0x0D
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its type code."""
_FLOAT: Final = 7
_ZERO: Final = 8
_FIRST_TEXT: Final = 13


def user_version(path: Path) -> int | None:
    """The number that `PRAGMA user_version` has set; None if the header is lost. Raises OSError."""
    with path.open("rb") as file:
        header = file.read(_VERSION_AT + 4)
    if len(header) < _VERSION_AT + 4 or not header.startswith(_MAGIC):
        return None
    return int.from_bytes(header[_VERSION_AT:])


def rows(path: Path) -> Iterator[Row]:
    """Every row in the file and in its write-ahead log, of whatever table. Raises OSError.

    Left out are rows of more than a page, which need several.
    """
    for page in _pages(path, 0, 0):
        yield from _rows(page)
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        for page in _pages(log, _LOG_HEADER, _FRAME_HEADER):
            yield from _rows(page)


def _pages(path: Path, begin: int, before_each: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(begin)
        while frame := file.read(before_each + PAGE):
            yield frame[before_each:]


def _rows(page: bytes) -> Iterator[Row]:
    if len(page) < PAGE or page[0] != _LEAF:
        return
    count = int.from_bytes(page[3:5])
    for place in range(8, min(8 + 2 * count, PAGE), 2):
        try:
            yield _row(page, int.from_bytes(page[place : place + 2]))
        except (IndexError, ValueError, struct.error):  # damaged, or continued on other pages
            continue


def _row(page: bytes, at: int) -> Row:
    size, at = _number(page, at)
    number, at = _number(page, at)
    cell = page[at : at + size]
    if len(cell) < size:
        raise ValueError("the row is not whole")
    head, at = _number(cell, 0)
    values, body = [], head
    while at < head:
        kind, at = _number(cell, at)
        value, body = _value(cell, kind, body)
        values.append(value)
    if body != size:
        raise ValueError("the row is not whole")
    return number, tuple(values)


def _number(cell: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, the most significant 7 bits first, and where it ends."""
    number = 0
    for place in range(at, at + 8):
        number = number << 7 | cell[place] & 0x7F
        if cell[place] < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return number, place + 1
    return number << 8 | cell[at + 8], at + 9


def _value(cell: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if size := _INTEGERS.get(kind):
        return int.from_bytes(cell[at : at + size], signed=True), at + size
    if kind == _FLOAT:
        return struct.unpack_from(">d", cell, at)[0], at + 8
    if kind in (_ZERO, _ZERO + 1):
        return kind - _ZERO, at
    if kind < _FIRST_TEXT or kind % 2 == 0:
        raise ValueError("a kind of value that no ledger has")
    size = (kind - _FIRST_TEXT) // 2
    return cell[at : at + size].decode(), at + size
