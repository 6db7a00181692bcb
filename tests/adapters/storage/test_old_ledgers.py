"""A ledger of every earlier schema, made from the SQL in `old_ledgers`, means the same after it was migrated."""

import contextlib
import math
import sqlite3
from pathlib import Path

import pytest

from english import in_english, raises
from skep.adapters.storage.ledger_file import MIGRATIONS, open_ledger
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.errors import StorageError
from skep.core.policy.allowance import Change, GpuMemory, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally, Totals
from skep.core.record.usage import Earned, Proportion, Quarter, Spent
from skep.core.text import Text

OLD = Path(__file__).with_name("old_ledgers")
VERSIONS = range(1, len(MIGRATIONS))
"""Of a file that was written by a version with so many migrations; the last one is the present."""
CONFIRMED, LOST, PENDING = ContributionState.CONFIRMED, ContributionState.LOST, ContributionState.PENDING

FAILED = Text("round.round_failed")
EARLY = [
    Contribution("a", 3, 64, CONFIRMED, peers=2),
    Contribution("b", 4, 32, LOST, reason=FAILED),
    Contribution("c", 4, 16, PENDING),
]
SETTLED_SINCE = [*EARLY[:2], Contribution("c", 4, 16, CONFIRMED, peers=3, swarm=512)]
CHANGES = [
    Change(1000.0, "p", 0.5, "away", Text("rule.training_share", share=0.5)),
    Change(1060.0, "p", 0.0, "battery", Text("rule.on_battery"), GpuMemory.SHRINK, network=False),
]
SPENT = Spent(180.0, 120.0, 60.0, 5000.0, 110.0)


@pytest.fixture
def make_old(tmp_path):
    def make(version):
        path = tmp_path / "ledger.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.executescript((OLD / f"{version}.sql").read_text(encoding="utf-8"))
        return path

    return make


def schema(connection):
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()


@pytest.mark.parametrize("version", VERSIONS)
def test_released_migrations_still_make_the_tables_of_their_time(make_old, tmp_path, version):
    with (
        contextlib.closing(sqlite3.connect(make_old(version))) as old,
        contextlib.closing(open_ledger(tmp_path / "now.sqlite", 1.0, MIGRATIONS[:version])) as now,
    ):
        assert old.execute("PRAGMA user_version").fetchone() == (version,)
        assert schema(old) == schema(now)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_earlier_version_recorded_means_the_same(make_old, version):
    with contextlib.closing(SqliteLedger(make_old(version))) as ledger:
        assert list(ledger.contributions()) == (EARLY if version < 3 else SETTLED_SINCE)
        assert list(ledger.pending("q")) == (EARLY[2:] if version < 3 else [])
        assert ledger.totals("p") == Totals(confirmed=Tally(1, 64), lost=Tally(1, 32))
        assert ledger.lost_reasons() == {FAILED: Tally(1, 32)}
        assert list(ledger.earned(900.0, 1800.0))[:2] == [
            Earned("p", 900.0, CONFIRMED, Tally(1, 64)),
            Earned("p", 900.0, LOST, Tally(1, 32)),
        ]
        assert ledger.position("p") == 4096
        first, second = ledger.evaluations("p")
        assert (first, second.epoch, math.isnan(second.loss)) == (Evaluation(3, 2.5), 4, True)
        assert list(ledger.changes(0.0, 2000.0)) == (CHANGES if version > 1 else [])
        assert list(ledger.reactions(9)) == ([Reaction(1060.0, "input", 0.2, 0.08)] if version > 1 else [])
        assert list(ledger.usage(0.0, 2000.0)) == ([Quarter("p", 900.0, SPENT)] if version > 2 else [])
        assert (ledger.spent(), ledger.alive()) == ((SPENT, 1120.0) if version > 2 else (Spent(), None))
        assert ledger.proportion() == (Proportion(16, 512) if version > 2 else Proportion())
        assert list(ledger.projects()) == ["p", "q"]


@pytest.mark.parametrize("version", VERSIONS)
def test_after_it_an_open_row_can_be_settled_and_a_settled_one_never_changes(make_old, version):
    with contextlib.closing(SqliteLedger(make_old(version))) as ledger:
        ledger.record("q", SETTLED_SINCE[2])
        ledger.record("p", Contribution("a", 3, 1, LOST))
        assert list(ledger.contributions()) == SETTLED_SINCE


def test_a_ledger_of_a_later_skep_is_refused_and_not_touched(make_old):
    path = make_old(VERSIONS[-1])
    with contextlib.closing(sqlite3.connect(path)) as later:
        later.execute("PRAGMA journal_mode = DELETE")  # a later version may have reasons against the write-ahead log
        later.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    with contextlib.closing(SqliteLedger(path)) as ledger:
        with raises(StorageError, match="written by a later version of skep") as caught:
            ledger.record("p", EARLY[2])
        assert in_english(caught.value.hint) == "Install that version, or a later one."
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
