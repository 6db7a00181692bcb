"""Rebuilding a damaged ledger: it is kept under another name, and its rows that can be read go into a new one."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from skep.adapters.storage import ledger_pages
from skep.adapters.storage.files import name_aside
from skep.adapters.storage.ledger_file import MIGRATIONS, empty_ledger, too_new
from skep.adapters.storage.ledger_pages import Row, Value
from skep.core.text import Problem, Text
from skep.files import sync

_BESIDE: Final = ("-wal", "-shm")
"""SQLite's own files beside a ledger."""
_FITTING: Final = {"TEXT": str, "INTEGER": int, "REAL": int | float}
"""SQLite keeps a whole number as an integer in a column of floats too."""


def rebuild(path: Path) -> Problem:
    """Replace the ledger by one with the rows that can be read, and say so. The damaged file is renamed.

    No other process may write to it. Raises StorageError for a ledger of a later version, OSError, sqlite3.Error; then
    nothing was changed.
    """
    version = ledger_pages.user_version(path) or len(MIGRATIONS)
    if version > len(MIGRATIONS):
        raise too_new(path)
    with empty_ledger(path.parent, MIGRATIONS[:version]) as made:
        with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
            kept = _fill(connection, ledger_pages.rows(path))
        aside = name_aside(path)
        aside.hardlink_to(path)
        for ending in _BESIDE:
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
        made.replace(path)
    sync(path.parent)
    return Problem(
        Text("ledger.ledger_was_damaged_rebuilt", count=kept), Text("ledger.damaged_file_kept_as", aside=str(aside))
    )


def _fill(connection: sqlite3.Connection, rows: Iterable[Row]) -> int:
    """Insert the rows, each into the table that it fits. Returns how many contributions there are then."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    tables = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in names}
    found: dict[str, list[tuple[Value, ...]]] = {name: [] for name in tables}
    for number, values in rows:
        for name, columns in tables.items():
            if _fits(values, columns):
                numbered = columns[0][2] == "INTEGER" and columns[0][5]
                found[name].append((number, *values[1:]) if numbered else values)
    connection.execute("BEGIN")
    for name, several in found.items():
        # numbers in a row only grow, so of several states of a row the latest comes last and replaces the others
        for values in sorted(several, key=lambda row: [value for value in row if isinstance(value, int | float)]):
            named = ", ".join(column[1] for column in tables[name][: len(values)])
            places = ", ".join("?" * len(values))
            with contextlib.suppress(sqlite3.IntegrityError, OverflowError):  # a row that no ledger can have
                connection.execute(f"INSERT OR REPLACE INTO {name} ({named}) VALUES ({places})", values)  # noqa: S608
    connection.execute("COMMIT")
    return int(connection.execute("SELECT count(*) FROM contributions").fetchone()[0])


def _fits(values: tuple[Value, ...], columns: list[tuple[int, str, str, int, str | None, int]]) -> bool:
    """Whether a row may be one of the table with these columns; an old row lacks those that were added later."""
    if len(values) > len(columns) or any(default is None for *_, default, _ in columns[len(values) :]):
        return False
    for value, (place, _, kind, required, _, key) in zip(values, columns, strict=False):
        its_number = place == 0 and kind == "INTEGER" and key
        if its_number or value is None:
            if value is not None or (required and not its_number):
                return False
        elif not isinstance(value, _FITTING[kind]):
            return False
    return True
