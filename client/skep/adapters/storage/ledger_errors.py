"""What SQLite says went wrong with the ledger, in words for people."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from skep.core.errors import StorageError
from skep.core.text import Text

_DAMAGED: Final = Text("ledger.nothing_was_changed_keep_copy")


def _words(path: str, code: int) -> tuple[Text, Text] | None:
    """What one of SQLite's primary result codes means, and what to do; None for a code that says nothing to people."""
    match code:
        case sqlite3.SQLITE_FULL:
            return Text("ledger.disk_full_ledger_cannot_written", path=path), Text("ledger.free_some_space_disk_what")
        case sqlite3.SQLITE_NOTADB:
            return Text("ledger.ledger_damaged_no_sqlite_file", path=path), _DAMAGED
        case sqlite3.SQLITE_CORRUPT:
            return Text("ledger.ledger_damaged", path=path), _DAMAGED
        case sqlite3.SQLITE_BUSY:
            return Text("ledger.ledger_held_another_program", path=path), Text("ledger.close_program_has_file_open")
        case sqlite3.SQLITE_IOERR:
            return Text("ledger.disk_failed_while_ledger_was", path=path), Text("ledger.check_disk_space_left_what")
        case sqlite3.SQLITE_READONLY:
            return Text("ledger.ledger_cannot_written", path=path), Text("ledger.make_file_folder_writable_you")
        case sqlite3.SQLITE_CANTOPEN:
            return Text("ledger.ledger_cannot_opened", path=path), Text("ledger.check_folder_exists_you_may")
        case _:
            return None


def storage_error(path: Path, error: Exception) -> StorageError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of the code says more than we need
    if words := _words(str(path), code):
        return StorageError(*words)
    said = error.strerror if isinstance(error, OSError) else str(error)
    return StorageError(
        Text("ledger.ledger_cannot_used", path=str(path), said=str(said)),
        Text("ledger.what_was_recorded_before_kept"),
    )
