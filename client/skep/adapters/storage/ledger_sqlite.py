"""The ledger of contributions in one SQLite file. Every call is durable when it returns.

The tables are in `ledger_file`. Times are wall clock, in seconds since the epoch.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, Final

from skep.adapters.clock import SystemClock
from skep.adapters.storage.ledger_file import NO_ROOM_TO_SHARE, open_ledger, storage_error
from skep.adapters.storage.ledger_rebuild import rebuild
from skep.core.errors import DamagedFile, StorageError
from skep.core.policy.allowance import Change, GpuMemory, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally, Totals
from skep.core.record.usage import QUARTER, Earned, Proportion, Quarter, Spent
from skep.core.text import Problem, Text, packed, unpacked
from skep.ports import Clock

BUSY_SECONDS: Final = 10.0
BRIEFLY_BUSY_SECONDS: Final = 0.5
"""For the engine's thread: what it cannot write now it writes later, and the give-back of the computer waits meanwhile."""
TIMELINE_SECONDS: Final = 366 * 86_400.0
"""How long the timeline is kept: a year. Contributions and their energy are kept permanently."""
REACTIONS_KEPT: Final = 1000

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
    SELECT state, count(*), CAST(total(samples) AS INTEGER) FROM contributions WHERE (?1 IS NULL OR project = ?1) GROUP BY state
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
_ADD_USAGE: Final = """
    INSERT INTO usage (project, quarter, staying, training, computing, joules, measured, added_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project, quarter) DO UPDATE SET
        staying = staying + excluded.staying, training = training + excluded.training,
        computing = computing + excluded.computing, joules = joules + excluded.joules,
        measured = measured + excluded.measured, added_at = excluded.added_at
"""
_USAGE: Final = """
    SELECT project, quarter, staying, training, computing, joules, measured FROM usage
    WHERE quarter >= ? AND quarter < ? ORDER BY quarter, project
"""
_SPENT: Final = """
    SELECT total(staying), total(training), total(computing), total(joules), total(measured) FROM usage
    WHERE (?1 IS NULL OR project = ?1)
"""
_EARNED: Final = """
    SELECT project, CAST(settled_at / ?3 AS INTEGER) * ?3 AS quarter, state, count(*), CAST(total(samples) AS INTEGER) FROM contributions
    WHERE settled_at >= ?1 AND settled_at < ?2 GROUP BY project, quarter, state ORDER BY quarter, min(number)
"""
_REASONS: Final = """
    SELECT reason, count(*) AS times, CAST(total(samples) AS INTEGER) FROM contributions
    WHERE state = 'lost' AND (?1 IS NULL OR project = ?1) GROUP BY reason ORDER BY times DESC, min(number)
"""
_PROPORTION: Final = """
    SELECT CAST(total(samples) AS INTEGER), CAST(total(swarm) AS INTEGER) FROM contributions
    WHERE state = 'confirmed' AND swarm > 0 AND (?1 IS NULL OR project = ?1)
"""
_FORGET_CHANGES: Final = """
    DELETE FROM changes
    WHERE at < ?1 AND number <> (SELECT number FROM changes WHERE at < ?1 ORDER BY at DESC, number DESC)
"""
_FORGET_REACTIONS: Final = "DELETE FROM reactions WHERE number <= (SELECT max(number) FROM reactions) - ?"


class SqliteLedger:
    """Implements ports.Ledger. Opens the file at the first call; all later calls, and `close`, must be in that thread.

    Other processes may read and write at the same time with their own ledgers.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock | None = None,
        *,
        patience: float = BUSY_SECONDS,
        once_open: float | None = None,
        mended: Callable[[Problem], None] | None = None,
    ) -> None:
        """`patience` is how many seconds a call waits for another process that is writing; `once_open`, if given, how many
        once the file is open.

        With `mended`, which is for the holder of the home's lock, a damaged file is rebuilt, and `mended` is told so.
        """
        self._path, self._patience, self._mended = path, patience, mended
        self._once_open = patience if once_open is None else once_open
        self._clock = clock or SystemClock()
        self._opened: sqlite3.Connection | None = None
        self._unchecked = mended is not None

    def record(self, project_id: str, contribution: Contribution) -> None:
        state, reason = contribution.state.value, packed(contribution.reason)
        told = {"project": project_id, "state": state, "reason": reason, "now": self._clock.wall()}
        self._run(_RECORD, asdict(contribution) | told)

    def pending(self, project_id: str) -> Sequence[Contribution]:
        return [_contribution(row) for row in self._run(_PENDING, (project_id,))]

    def totals(self, project_id: str | None = None) -> Totals:
        rows = self._run(_TOTALS, (project_id,))
        return Totals(**{state: Tally(count, samples) for state, count, samples in rows})

    def contributions(self, project_id: str | None = None) -> Sequence[Contribution]:
        return [_contribution(row) for row in self._run(_CONTRIBUTIONS, (project_id,))]

    def save_position(self, project_id: str, position: int) -> None:
        self._run(_SAVE_POSITION, (project_id, position, self._clock.wall()))

    def position(self, project_id: str) -> int:
        rows = self._run("SELECT position FROM positions WHERE project = ?", (project_id,))
        return int(rows[0][0]) if rows else 0

    def save_evaluation(self, project_id: str, evaluation: Evaluation) -> None:
        loss = None if math.isnan(evaluation.loss) else evaluation.loss
        self._run(_SAVE_EVALUATION, (project_id, evaluation.epoch, loss, self._clock.wall()))

    def evaluations(self, project_id: str) -> Sequence[Evaluation]:
        rows = self._run("SELECT epoch, loss FROM evaluations WHERE project = ? ORDER BY number", (project_id,))
        return [Evaluation(epoch, math.nan if loss is None else loss) for epoch, loss in rows]

    def projects(self) -> Sequence[str]:
        return [project for (project,) in self._run(_PROJECTS)]

    def record_change(self, change: Change) -> None:
        told = (change.at, change.project, change.share, change.rule, packed(change.reason), change.memory.value)
        # the entry that applied a year ago stays, so that the year begins with it; the row comes last, since a call that
        # fails is repeated
        self._run(_FORGET_CHANGES, (change.at - TIMELINE_SECONDS,))
        self._run(_RECORD_CHANGE, (*told, int(change.network)))

    def changes(self, begin: float, end: float) -> Sequence[Change]:
        return [_change(row) for row in self._run(_CHANGES, (begin, end))]

    def record_reaction(self, reaction: Reaction) -> None:
        self._run(_FORGET_REACTIONS, (REACTIONS_KEPT - 1,))
        self._run(_RECORD_REACTION, astuple(reaction))

    def reactions(self, most: int) -> Sequence[Reaction]:
        return [Reaction(*row) for row in self._run(_REACTIONS, (most,))]

    def add_usage(self, quarter: Quarter) -> None:
        self._run(_ADD_USAGE, (quarter.project, quarter.begin, *astuple(quarter.spent), self._clock.wall()))

    def usage(self, begin: float, end: float) -> Sequence[Quarter]:
        return [Quarter(project, at, Spent(*amounts)) for project, at, *amounts in self._run(_USAGE, (begin, end))]

    def spent(self, project_id: str | None = None) -> Spent:
        return Spent(*self._run(_SPENT, (project_id,))[0])

    def alive(self) -> float | None:
        found: float | None = self._run("SELECT max(added_at) FROM usage")[0][0]
        return found

    def earned(self, begin: float, end: float) -> Sequence[Earned]:
        return [
            Earned(project, quarter, ContributionState(state), Tally(count, samples))
            for project, quarter, state, count, samples in self._run(_EARNED, (begin, end, QUARTER))
        ]

    def lost_reasons(self, project_id: str | None = None) -> Mapping[Text, Tally]:
        rows = self._run(_REASONS, (project_id,))
        return {unpacked(reason): Tally(count, samples) for reason, count, samples in rows}

    def proportion(self, project_id: str | None = None) -> Proportion:
        samples, swarm = self._run(_PROPORTION, (project_id,))[0]
        return Proportion(samples or 0, swarm or 0)

    def close(self) -> None:
        connection, self._opened = self._opened, None
        if connection is not None:
            with self._translated():
                connection.close()

    def _run(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """The rows of a statement's result. Raises StorageError."""
        try:
            return self._carry_out(statement, values)
        except DamagedFile:
            if self._mended is None:
                raise
        self._mended(self._rebuilt())
        return self._carry_out(statement, values)

    def _carry_out(self, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        with self._translated():
            try:
                self._opened = self._opened or self._open()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != NO_ROOM_TO_SHARE:
                    raise
                # for this call only: others wait until it ends, and there may be room at the next one
                with contextlib.closing(self._open(alone=True)) as connection:
                    return connection.execute(statement, values).fetchall()
            return self._opened.execute(statement, values).fetchall()

    def _open(self, *, alone: bool = False) -> sqlite3.Connection:
        check, self._unchecked = self._unchecked, False
        patience = self._once_open if alone else self._patience  # alone it is opened for each call
        connection = open_ledger(self._path, patience, check=check, alone=alone)
        connection.execute(f"PRAGMA busy_timeout = {self._once_open * 1000:.0f}")
        return connection

    def _rebuilt(self) -> Problem:
        with contextlib.suppress(StorageError):  # what it cannot write any more is read from its pages
            self.close()
        with self._translated():
            return rebuild(self._path)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a bug, such as use in the wrong thread; the caller's log should show it unchanged
        except (sqlite3.Error, OverflowError, OSError) as error:
            raise storage_error(self._path, error) from error


def _contribution(row: tuple[str, int, int, str, str, int, int]) -> Contribution:
    contribution_id, epoch, samples, state, reason, peers, swarm = row
    return Contribution(contribution_id, epoch, samples, ContributionState(state), unpacked(reason), peers, swarm)


def _change(row: tuple[float, str, float, str, str, str, int]) -> Change:
    at, project, share, rule, reason, memory, network = row
    return Change(at, project, share, rule, unpacked(reason), GpuMemory(memory), bool(network))
