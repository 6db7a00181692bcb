"""The part of the SQLite ledger that knows time: what projects cost, what was settled when, and what is forgotten.

Its functions run on the connection that `ledger_sqlite` opens and guards. Times are wall clock seconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from skep.core.record.contributions import ContributionState, Tally
from skep.core.record.usage import QUARTER, Earned, Proportion, Quarter, Spent
from skep.core.text import Text, unpacked

TIMELINE_SECONDS: Final = 366 * 86_400.0
"""How long the timeline is kept: a year. What was contributed and what it cost is kept for good."""
REACTIONS_KEPT: Final = 1000

MIGRATION: Final = """
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
"""

_ADD: Final = """
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
    SELECT project, CAST(settled_at / ?3 AS INTEGER) * ?3 AS quarter, state, count(*), sum(samples) FROM contributions
    WHERE settled_at >= ?1 AND settled_at < ?2 GROUP BY project, quarter, state ORDER BY quarter, min(number)
"""
_REASONS: Final = """
    SELECT reason, count(*) AS times, sum(samples) FROM contributions
    WHERE state = 'lost' AND (?1 IS NULL OR project = ?1) GROUP BY reason ORDER BY times DESC, min(number)
"""
_PROPORTION: Final = """
    SELECT sum(samples), sum(swarm) FROM contributions
    WHERE state = 'confirmed' AND swarm > 0 AND (?1 IS NULL OR project = ?1)
"""
_FORGET_CHANGES: Final = """
    DELETE FROM changes
    WHERE at < ?1 AND number <> (SELECT number FROM changes WHERE at < ?1 ORDER BY at DESC, number DESC)
"""
_FORGET_REACTIONS: Final = "DELETE FROM reactions WHERE number <= (SELECT max(number) FROM reactions) - ?"


def add(connection: sqlite3.Connection, quarter: Quarter, now: float) -> None:
    spent = quarter.spent
    amounts = (spent.staying, spent.training, spent.computing, spent.joules, spent.measured)
    connection.execute(_ADD, (quarter.project, quarter.begin, *amounts, now))


def usage(connection: sqlite3.Connection, begin: float, end: float) -> Sequence[Quarter]:
    return [Quarter(project, at, Spent(*amounts)) for project, at, *amounts in connection.execute(_USAGE, (begin, end))]


def spent(connection: sqlite3.Connection, project: str | None) -> Spent:
    return Spent(*connection.execute(_SPENT, (project,)).fetchone())


def alive(connection: sqlite3.Connection) -> float | None:
    found: float | None = connection.execute("SELECT max(added_at) FROM usage").fetchone()[0]
    return found


def earned(connection: sqlite3.Connection, begin: float, end: float) -> Sequence[Earned]:
    rows = connection.execute(_EARNED, (begin, end, QUARTER))
    return [
        Earned(project, quarter, ContributionState(state), Tally(count, samples))
        for project, quarter, state, count, samples in rows
    ]


def lost_reasons(connection: sqlite3.Connection, project: str | None) -> Mapping[Text, Tally]:
    return {
        unpacked(reason): Tally(count, samples) for reason, count, samples in connection.execute(_REASONS, (project,))
    }


def proportion(connection: sqlite3.Connection, project: str | None) -> Proportion:
    samples, swarm = connection.execute(_PROPORTION, (project,)).fetchone()
    return Proportion(samples or 0, swarm or 0)


def forget_changes(connection: sqlite3.Connection, now: float) -> None:
    """What is a year old; the entry that was in force then stays, so that the year begins with it."""
    connection.execute(_FORGET_CHANGES, (now - TIMELINE_SECONDS,))


def forget_reactions(connection: sqlite3.Connection) -> None:
    connection.execute(_FORGET_REACTIONS, (REACTIONS_KEPT,))
