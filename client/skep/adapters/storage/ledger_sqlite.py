"""The ledger of contributions in one SQLite file. Every call is durable when it returns, and a crash loses nothing.

It must not decide what a contribution is worth; it keeps what it is told, and SQL itself keeps what is settled from
changing. Times are wall clock, in seconds since the epoch.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from skep.adapters.clock import SystemClock
from skep.adapters.storage import ledger_usage
from skep.adapters.storage.ledger_errors import storage_error
from skep.adapters.storage.old_reasons import as_message
from skep.core.errors import StorageError
from skep.core.policy.allowance import Change, GpuMemory, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally, Totals
from skep.core.record.usage import Earned, Proportion, Quarter, Spent
from skep.core.text import Text, packed, unpacked
from skep.ports import Clock

BUSY_SECONDS: Final = 10.0
"""How long a call waits for another process that is writing just now."""
BUSY_LOOK_SECONDS: Final = 0.01

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
    ledger_usage.MIGRATION,
    """
    DROP TRIGGER settled_is_not_changed;
    UPDATE contributions SET reason = as_message(reason);
    CREATE TRIGGER settled_is_not_changed BEFORE UPDATE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution never changes'); END;
    UPDATE changes SET reason = as_message(reason);
    """,
)
"""What leads from version N of the file to N + 1. Entries that were released are never edited; new ones are added."""

_RECORD: Final = """
    INSERT INTO contributions (project, id, epoch, samples, state, reason, peers, swarm, recorded_at, settled_at)
    VALUES (:project, :id, :epoch, :samples, :state, :reason, :peers, :swarm, :now, iif(:state = 'pending', NULL, :now))
    ON CONFLICT (project, id) DO UPDATE SET
        epoch = excluded.epoch, samples = excluded.samples, state = excluded.state, reason = excluded.reason,
        peers = excluded.peers, swarm = excluded.swarm, settled_at = excluded.settled_at
"""
_SAVE_POSITION: Final = """
    INSERT INTO positions (project, position, saved_at) VALUES (?, ?, ?)
    ON CONFLICT (project) DO UPDATE SET position = excluded.position, saved_at = excluded.saved_at
"""
_SAVE_EVALUATION: Final = "INSERT INTO evaluations (project, epoch, loss, measured_at) VALUES (?, ?, ?, ?)"
_CONTRIBUTIONS: Final = """
    SELECT id, epoch, samples, state, reason, peers, swarm FROM contributions
    WHERE (?1 IS NULL OR project = ?1) ORDER BY number
"""
_PENDING: Final = """
    SELECT id, epoch, samples, state, reason, peers, swarm FROM contributions
    WHERE project = ? AND state = 'pending' ORDER BY number
"""
_PROJECTS: Final = """
    SELECT project FROM (
        SELECT project, 0 AS late, min(number) AS first FROM contributions GROUP BY project
        UNION ALL SELECT project, 1, min(quarter) FROM usage GROUP BY project
    ) GROUP BY project ORDER BY min(late), first
"""
_TOTALS: Final = """
    SELECT state, count(*), sum(samples) FROM contributions WHERE (?1 IS NULL OR project = ?1) GROUP BY state
"""
_RECORD_CHANGE: Final = """
    INSERT INTO changes (at, project, share, rule, reason, memory, network) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_CHANGES: Final = """
    SELECT at, project, share, rule, reason, memory, network FROM changes
    WHERE at < ?2 AND (at >= ?1 OR number = (SELECT number FROM changes WHERE at < ?1 ORDER BY at DESC, number DESC))
    ORDER BY at, number
"""
_RECORD_REACTION: Final = "INSERT INTO reactions (at, rule, share, seconds) VALUES (?, ?, ?, ?)"
_REACTIONS: Final = """
    SELECT at, rule, share, seconds FROM (SELECT * FROM reactions ORDER BY number DESC LIMIT ?) ORDER BY number
"""


class SqliteLedger:
    """Implements ports.Ledger. Opens the file at the first call; from then on it belongs to that thread, `close` too.

    Other processes may read, and even write, at the same time through ledgers of their own.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._opened: sqlite3.Connection | None = None

    def record(self, project_id: str, contribution: Contribution) -> None:
        values = {
            "project": project_id,
            "id": contribution.id,
            "epoch": contribution.epoch,
            "samples": contribution.samples,
            "state": contribution.state.value,
            "reason": packed(contribution.reason),
            "peers": contribution.peers,
            "swarm": contribution.swarm,
            "now": self._clock.wall(),
        }
        with self._connection() as connection:
            connection.execute(_RECORD, values)

    def pending(self, project_id: str) -> Sequence[Contribution]:
        with self._connection() as connection:
            return [_contribution(row) for row in connection.execute(_PENDING, (project_id,))]

    def totals(self, project_id: str | None = None) -> Totals:
        with self._connection() as connection:
            rows = connection.execute(_TOTALS, (project_id,)).fetchall()
        return Totals(**{state: Tally(count, samples) for state, count, samples in rows})

    def contributions(self, project_id: str | None = None) -> Sequence[Contribution]:
        with self._connection() as connection:
            return [_contribution(row) for row in connection.execute(_CONTRIBUTIONS, (project_id,))]

    def save_position(self, project_id: str, position: int) -> None:
        with self._connection() as connection:
            connection.execute(_SAVE_POSITION, (project_id, position, self._clock.wall()))

    def position(self, project_id: str) -> int:
        with self._connection() as connection:
            row = connection.execute("SELECT position FROM positions WHERE project = ?", (project_id,)).fetchone()
        return int(row[0]) if row else 0

    def save_evaluation(self, project_id: str, evaluation: Evaluation) -> None:
        loss = None if math.isnan(evaluation.loss) else evaluation.loss
        with self._connection() as connection:
            connection.execute(_SAVE_EVALUATION, (project_id, evaluation.epoch, loss, self._clock.wall()))

    def evaluations(self, project_id: str) -> Sequence[Evaluation]:
        query = "SELECT epoch, loss FROM evaluations WHERE project = ? ORDER BY number"
        with self._connection() as connection:
            rows = connection.execute(query, (project_id,)).fetchall()
        return [Evaluation(epoch, math.nan if loss is None else loss) for epoch, loss in rows]

    def projects(self) -> Sequence[str]:
        with self._connection() as connection:
            return [project for (project,) in connection.execute(_PROJECTS)]

    def record_change(self, change: Change) -> None:
        told = (change.at, change.project, change.share, change.rule, packed(change.reason), change.memory.value)
        with self._connection() as connection:
            connection.execute(_RECORD_CHANGE, (*told, int(change.network)))
            ledger_usage.forget_changes(connection, change.at)

    def changes(self, begin: float, end: float) -> Sequence[Change]:
        with self._connection() as connection:
            rows = connection.execute(_CHANGES, (begin, end)).fetchall()
        return [_change(row) for row in rows]

    def record_reaction(self, reaction: Reaction) -> None:
        told = (reaction.at, reaction.rule, reaction.share, reaction.seconds)
        with self._connection() as connection:
            connection.execute(_RECORD_REACTION, told)
            ledger_usage.forget_reactions(connection)

    def reactions(self, most: int) -> Sequence[Reaction]:
        with self._connection() as connection:
            return [Reaction(*row) for row in connection.execute(_REACTIONS, (most,))]

    def add_usage(self, quarter: Quarter) -> None:
        with self._connection() as connection:
            ledger_usage.add(connection, quarter, self._clock.wall())

    def usage(self, begin: float, end: float) -> Sequence[Quarter]:
        with self._connection() as connection:
            return ledger_usage.usage(connection, begin, end)

    def spent(self, project_id: str | None = None) -> Spent:
        with self._connection() as connection:
            return ledger_usage.spent(connection, project_id)

    def alive(self) -> float | None:
        with self._connection() as connection:
            return ledger_usage.alive(connection)

    def earned(self, begin: float, end: float) -> Sequence[Earned]:
        with self._connection() as connection:
            return ledger_usage.earned(connection, begin, end)

    def lost_reasons(self, project_id: str | None = None) -> Mapping[Text, Tally]:
        with self._connection() as connection:
            return ledger_usage.lost_reasons(connection, project_id)

    def proportion(self, project_id: str | None = None) -> Proportion:
        with self._connection() as connection:
            return ledger_usage.proportion(connection, project_id)

    def close(self) -> None:
        connection, self._opened = self._opened, None
        if connection is not None:
            with self._translated():
                connection.close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            if self._opened is None:
                self._opened = _open(self._path)
            yield self._opened

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a mistake of ours, such as the wrong thread; the caller's log should show it as it is
        except (sqlite3.Error, OverflowError, OSError) as error:
            raise storage_error(self._path, error) from error


def _contribution(row: tuple[str, int, int, str, str, int, int]) -> Contribution:
    contribution_id, epoch, samples, state, reason, peers, swarm = row
    return Contribution(contribution_id, epoch, samples, ContributionState(state), unpacked(reason), peers, swarm)


def _change(row: tuple[float, str, float, str, str, str, int]) -> Change:
    at, project, share, rule, reason, memory, network = row
    return Change(at, project, share, rule, unpacked(reason), GpuMemory(memory), bool(network))


def _open(path: Path) -> sqlite3.Connection:
    _make_private(path)
    # without isolation_level every statement is a transaction of its own, and durable when it returns
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        _log_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. Where several do so with a new file SQLite refuses all but one at once, without waiting."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_LOOK_SECONDS)
        else:
            return


def _make_private(path: Path) -> None:
    """SQLite would make the file readable for everybody the umask permits.

    An existing one is not even opened: closing it would drop the locks of another connection in this process.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) > len(MIGRATIONS):
        raise StorageError(
            Text("ledger.ledger_was_written_later_version", path=str(path)),
            Text("ledger.install_version_later_one"),
        )
    if _version(connection) == len(MIGRATIONS):
        return
    connection.create_function("as_message", 1, as_message, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again: another process may have been first
        for script in MIGRATIONS[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """One by one, since sqlite3's executescript would commit in between."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            if statement.strip("; \n"):
                yield statement
            statement = ""
