"""The ledger's file: its tables and migrations, opening it, and messages for SQLite's errors.

SQL triggers prevent changes of settled contributions. `ledger_rebuild` mends a damaged file.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from skep.adapters.storage.old_reasons import as_message
from skep.core.errors import DamagedFile, StorageError
from skep.core.text import Text
from skep.files import sync

BUSY_LOOK_SECONDS: Final = 0.01
NO_ROOM_TO_SHARE: Final = sqlite3.SQLITE_IOERR_SHMSIZE
"""SQLite's code when a full disk has no room for the file that all connections to one ledger share."""
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

MIGRATIONS: Final = (
    """
    CREATE TABLE contributions (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        id TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        samples INTEGER NOT NULL CHECK (samples >= 0),
        state TEXT NOT NULL CHECK (state IN ('pending', 'confirmed', 'lost')),
        reason TEXT NOT NULL,
        peers INTEGER NOT NULL,
        recorded_at REAL NOT NULL,
        settled_at REAL CHECK ((settled_at IS NULL) = (state = 'pending')),
        UNIQUE (project, id)
    ) STRICT;

    CREATE INDEX contributions_pending ON contributions (project) WHERE state = 'pending';

    CREATE TRIGGER settled_is_not_replaced BEFORE INSERT ON contributions
    WHEN EXISTS (
        SELECT 1 FROM contributions
        WHERE (number = NEW.number OR (project = NEW.project AND id = NEW.id)) AND state <> 'pending'
    ) BEGIN SELECT RAISE(IGNORE); END;

    CREATE TRIGGER settled_is_not_changed BEFORE UPDATE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution never changes'); END;

    CREATE TRIGGER settled_is_not_deleted BEFORE DELETE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution is never deleted'); END;

    CREATE TRIGGER contribution_keeps_its_name BEFORE UPDATE OF number, project, id, recorded_at ON contributions
    BEGIN SELECT RAISE(ABORT, 'a contribution keeps its project, id and time'); END;

    CREATE TABLE positions (
        project TEXT PRIMARY KEY,
        position INTEGER NOT NULL CHECK (position >= 0),
        saved_at REAL NOT NULL
    ) STRICT;

    CREATE TABLE evaluations (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        loss REAL, -- NULL stands for "not a number", which SQLite does not have
        measured_at REAL NOT NULL
    ) STRICT;

    CREATE INDEX evaluations_of_project ON evaluations (project);
    """,
    """
    CREATE TABLE changes (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        project TEXT NOT NULL,
        share REAL NOT NULL,
        rule TEXT NOT NULL,
        reason TEXT NOT NULL,
        memory TEXT NOT NULL,
        network INTEGER NOT NULL CHECK (network IN (0, 1))
    ) STRICT;

    CREATE INDEX changes_by_time ON changes (at);

    CREATE TABLE reactions (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        rule TEXT NOT NULL,
        share REAL NOT NULL,
        seconds REAL NOT NULL CHECK (seconds >= 0)
    ) STRICT;
    """,
    """
    ALTER TABLE contributions ADD COLUMN swarm INTEGER NOT NULL DEFAULT 0 CHECK (swarm >= 0);

    CREATE INDEX contributions_by_time ON contributions (settled_at);

    CREATE TABLE usage (
        project TEXT NOT NULL,
        quarter REAL NOT NULL,
        staying REAL NOT NULL,
        training REAL NOT NULL,
        computing REAL NOT NULL,
        joules REAL NOT NULL,
        measured REAL NOT NULL,
        added_at REAL NOT NULL,
        PRIMARY KEY (project, quarter)
    ) STRICT;

    CREATE INDEX usage_by_time ON usage (quarter);

    CREATE INDEX usage_by_writing ON usage (added_at);
    """,
    """
    DROP TRIGGER settled_is_not_changed;
    UPDATE contributions SET reason = as_message(reason);
    CREATE TRIGGER settled_is_not_changed BEFORE UPDATE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution never changes'); END;
    UPDATE changes SET reason = as_message(reason);
    """,
)
"""Scripts that migrate the file from version N to N + 1. Released entries are never edited; new ones are appended."""


def open_ledger(
    path: Path, patience: float, migrations: Sequence[str] = MIGRATIONS, *, check: bool = False, alone: bool = False
) -> sqlite3.Connection:
    """A connection to the file, created or updated by `migrations`.

    `patience` is how many seconds a call waits for another process that is writing. `check` reads the whole file to
    find damage. `alone` keeps all other connections away, and needs no file for what they share: on a full disk such a
    connection can still read. Raises DamagedFile, StorageError for a file of a later version, sqlite3.Error, OSError.
    """
    if not path.exists():
        _create(path, migrations)
    if path.is_file() and not path.stat().st_size:
        raise damaged(path)  # SQLite would take it for a new ledger, and delete its write-ahead log
    # without isolation_level every statement is its own transaction, and durable when it returns
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _refuse(connection, path, len(migrations), check=check)
        _log_ahead(connection, patience)
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse(connection: sqlite3.Connection, path: Path, latest: int, *, check: bool) -> None:
    if _version(connection) > latest:
        raise too_new(path)
    if check and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise damaged(path)


def _create(path: Path, migrations: Sequence[str]) -> None:
    """Create the file, complete or not at all, for this user only; another process may do so at the same time."""
    with empty_ledger(path.parent, migrations) as made, contextlib.suppress(FileExistsError):
        path.hardlink_to(made)
    sync(path.parent)


@contextlib.contextmanager
def empty_ledger(folder: Path, migrations: Sequence[str]) -> Iterator[Path]:
    """The path of a new ledger in `folder`, which is removed at the end unless it was renamed."""
    with tempfile.TemporaryDirectory(prefix=".ledger.", dir=folder) as private:
        made = Path(private, "ledger.sqlite")
        with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
            _log_ahead(connection, 0.0)
            _migrate(connection, migrations)
        made.chmod(0o600)
        yield made


def _log_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to the write-ahead log. If several processes do so with a new file, all but one fail without waiting."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_LOOK_SECONDS)
        else:
            return


def _migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    if _version(connection) == len(migrations):
        return
    connection.create_function("as_message", 1, as_message, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again: another process may have migrated it
        for script in migrations[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def too_new(path: Path) -> StorageError:
    return StorageError(
        Text("ledger.ledger_was_written_later_version", path=str(path)), Text("ledger.install_version_later_one")
    )


def damaged(path: Path) -> DamagedFile:
    return DamagedFile(Text("ledger.ledger_damaged", path=str(path)), Text("ledger.start_skep_keeps_rows_read"))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, since sqlite3's executescript would commit in between."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip("; \n"):
                yield statement
            statement = ""


def _words(path: str, code: int) -> tuple[Text, Text] | None:
    """Title and hint for one of SQLite's primary result codes; None for a code that does not help the user."""
    match code:
        case sqlite3.SQLITE_FULL:
            return Text("ledger.disk_full_ledger_cannot_written", path=path), Text("ledger.free_some_space_disk_what")
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


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def storage_error(path: Path, error: Exception) -> StorageError:
    code = getattr(error, "sqlite_errorcode", 0)
    # the other bits are SQLite's extended code
    code = sqlite3.SQLITE_FULL if code == NO_ROOM_TO_SHARE or _is_full(error) else code & 0xFF
    if code in _DAMAGED:
        return damaged(path)
    if words := _words(str(path), code):
        return StorageError(*words)
    said = error.strerror if isinstance(error, OSError) else str(error)
    return StorageError(
        Text("ledger.ledger_cannot_used", path=str(path), said=str(said)),
        Text("ledger.what_was_recorded_before_kept"),
    )
