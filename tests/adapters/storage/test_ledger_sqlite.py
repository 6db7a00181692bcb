"""Tests that need a real SQLite file: durability, damage, full disks, other processes."""

import contextlib
import random
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest

from english import in_english, raises
from fakes import FakeClock
from skep.adapters.storage.ledger_file import MIGRATIONS, open_ledger, storage_error
from skep.adapters.storage.ledger_sqlite import BUSY_SECONDS, REACTIONS_KEPT, TIMELINE_SECONDS, SqliteLedger
from skep.core.errors import StorageError
from skep.core.policy.allowance import Change, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally
from skep.core.record.usage import Earned, Spent
from skep.core.text import verbatim

PENDING, CONFIRMED, LOST = ContributionState.PENDING, ContributionState.CONFIRMED, ContributionState.LOST


def change(at):
    return Change(at, "p", 1.0, "away", verbatim("Training at full share."))


def contribution(name, state=PENDING):
    return Contribution(name, epoch=1, samples=10, state=state)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def path(home):
    return home.ledger_file


@pytest.fixture
def ledger(path, clock):
    made = SqliteLedger(path, clock)
    yield made
    made.close()


@contextlib.contextmanager
def raw(path):
    """A connection without our code."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


# --- times


def test_what_was_settled_is_found_by_its_quarter_of_an_hour(ledger, clock):
    clock.wall_now = 9_000.0
    ledger.record("p", contribution("a"))
    clock.advance(950)
    ledger.record("p", contribution("a", CONFIRMED))
    ledger.record("q", contribution("b", LOST))
    ledger.record("p", contribution("c", CONFIRMED))
    clock.advance(900)
    ledger.record("p", contribution("d", CONFIRMED))
    ten, twenty = Tally(1, 10), Tally(2, 20)
    first = [Earned("p", 9_900.0, CONFIRMED, twenty), Earned("q", 9_900.0, LOST, ten)]
    assert list(ledger.earned(9_900.0, 10_800.0)) == first
    assert list(ledger.earned(9_900.0, 1e9)) == [*first, Earned("p", 10_800.0, CONFIRMED, ten)]
    assert list(ledger.earned(0.0, 9_900.0)) == []


def test_the_timeline_is_kept_for_a_year_and_begins_with_what_was_in_force(ledger):
    at = [0.0, 100.0, 200.0, TIMELINE_SECONDS]
    for each in at:
        ledger.record_change(change(each))
    assert [each.at for each in ledger.changes(0.0, 1e12)] == at
    ledger.record_change(change(TIMELINE_SECONDS + 250.0))
    assert [each.at for each in ledger.changes(0.0, 1e12)] == [200.0, TIMELINE_SECONDS, TIMELINE_SECONDS + 250.0]


def test_a_thousand_reactions_are_kept(ledger, path):
    ledger.record_reaction(Reaction(0.0, "input", 0.2, 0.1))
    with raw(path) as connection:
        connection.execute("BEGIN")
        rows = [(float(number),) for number in range(1, REACTIONS_KEPT)]
        connection.executemany("INSERT INTO reactions (at, rule, share, seconds) VALUES (?, 'input', 0.2, 0.1)", rows)
        connection.execute("COMMIT")
    for number in range(3):
        ledger.record_reaction(Reaction(REACTIONS_KEPT + number, "input", 0.2, 0.1))
    assert [each.at for each in ledger.reactions(2000)] == list(range(3, REACTIONS_KEPT + 3))


# --- constraints in SQL


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE contributions SET state = 'lost' WHERE id = 'settled'",
        "UPDATE contributions SET samples = 99 WHERE id = 'settled'",
        "DELETE FROM contributions WHERE id = 'settled'",
        "UPDATE contributions SET id = 'other' WHERE id = 'open'",
        "UPDATE OR REPLACE contributions SET number = 1 WHERE id = 'open'",
        "UPDATE contributions SET recorded_at = 0 WHERE id = 'open'",
        "UPDATE contributions SET state = 'perhaps' WHERE id = 'open'",
        "UPDATE contributions SET state = 'confirmed' WHERE id = 'open'",  # without settled_at
        "UPDATE contributions SET samples = -1 WHERE id = 'open'",
        "UPDATE contributions SET samples = 'many' WHERE id = 'open'",
    ],
)
def test_no_program_can_change_what_is_settled_or_write_nonsense(ledger, path, statement):
    ledger.record("p", contribution("settled", CONFIRMED))
    ledger.record("p", contribution("open"))
    with raw(path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


@pytest.mark.parametrize(("number", "name"), [("1", "settled"), ("NULL", "settled"), ("7", "settled"), ("1", "other")])
def test_no_program_can_replace_what_is_settled(ledger, path, number, name):
    ledger.record("p", contribution("settled", CONFIRMED))
    with raw(path) as connection:
        connection.execute(
            f"INSERT OR REPLACE INTO contributions VALUES ({number}, 'p', '{name}', 9, 9, 'pending', '', 9, 9, NULL, 0)"
        )
    assert list(ledger.contributions()) == [contribution("settled", CONFIRMED)]


def test_times_are_those_of_the_clock(ledger, path, clock):
    ledger.record("p", contribution("a"))
    clock.advance(60)
    ledger.record("p", contribution("a", CONFIRMED))
    clock.advance(60)
    ledger.record("p", contribution("a", LOST))
    ledger.save_position("p", 5)
    ledger.save_evaluation("p", Evaluation(1, 2.0))
    begun = FakeClock().wall_now
    with raw(path) as connection:
        times = connection.execute("SELECT recorded_at, settled_at FROM contributions").fetchall()
        assert times == [(begun, begun + 60)]
        assert connection.execute("SELECT saved_at FROM positions").fetchall() == [(begun + 120,)]
        assert connection.execute("SELECT measured_at FROM evaluations").fetchall() == [(begun + 120,)]


# --- the file


def test_making_a_ledger_opens_nothing(path):
    SqliteLedger(path)
    assert not path.exists()


def test_the_file_is_for_this_user_only(ledger, path):
    ledger.record("p", contribution("a"))
    files = list(path.parent.glob("ledger*"))
    assert len(files) == 3  # with the files of the write-ahead log
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_it_writes_ahead_and_waits_for_the_disk(ledger, path):
    ledger.record("p", contribution("a"))
    assert ledger._opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger._opened.execute("PRAGMA synchronous").fetchone() == (2,)
    assert ledger._opened.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_after_closing_one_file_is_left(ledger, path):
    ledger.record("p", contribution("a"))
    ledger.close()
    ledger.close()
    assert list(path.parent.glob("ledger*")) == [path]
    assert list(ledger.contributions()) == [contribution("a")]


def test_another_thread_may_not_use_what_one_has_opened(ledger):
    ledger.record("p", contribution("a"))
    caught = []

    def use():
        try:
            ledger.totals()
        except sqlite3.ProgrammingError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(caught) == 1


def test_a_reader_sees_what_is_written_meanwhile(ledger, path):
    ledger.record("p", contribution("a"))
    reader = SqliteLedger(path)
    assert len(reader.contributions()) == 1
    with raw(path) as writer:
        writer.execute("BEGIN IMMEDIATE")  # an open write transaction blocks no reader
        assert len(reader.contributions()) == 1
        writer.execute("COMMIT")
    ledger.record("p", contribution("b"))
    assert [each.id for each in reader.contributions()] == ["a", "b"]
    reader.close()


@pytest.mark.parametrize("_again", range(20))  # the race occurs rarely
def test_several_may_open_a_new_ledger_at_once(path, _again):
    problems = []

    def open_and_record(name):
        ledger = SqliteLedger(path)
        try:
            for number in range(5):
                ledger.record("p", contribution(f"{name}-{number}"))
        except StorageError as error:
            problems.append(error)
        finally:
            ledger.close()

    threads = [threading.Thread(target=open_and_record, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    ledger = SqliteLedger(path)
    assert len(ledger.contributions()) == 40
    ledger.close()


# --- failures


def test_a_file_that_is_no_database_is_said_and_left_alone(ledger, path):
    path.write_text("something else entirely\n" * 100)
    with pytest.raises(StorageError) as caught:
        ledger.totals()
    assert in_english(caught.value.title) == f"The ledger {path} is damaged."
    assert in_english(caught.value.hint).startswith("Start skep in this home: it renames the damaged file")
    assert path.read_text() == "something else entirely\n" * 100


def test_a_damaged_page_is_said(ledger, path):
    for number in range(300):
        ledger.record("p", contribution(f"name-{number}"))
    ledger.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\x5a" * (len(whole) - 4096))
    with raises(StorageError, match="is damaged"):
        ledger.contributions()


def test_a_ledger_of_a_later_version_is_refused(ledger, path):
    ledger.record("p", contribution("a"))
    ledger.close()
    with raw(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with raises(StorageError, match="written by a later version of skep"):
        ledger.totals()


def test_a_ledger_of_an_earlier_version_opens_with_all_that_was_recorded(ledger, path):
    with contextlib.closing(open_ledger(path, 1.0, MIGRATIONS[:1])) as connection:
        connection.execute("INSERT INTO positions VALUES ('p', 77, 5.0)")
        connection.execute("INSERT INTO contributions VALUES (1, 'p', 'a', 1, 10, 'confirmed', '', 2, 5.0, 6.0)")
    change = Change(5.0, "p", 0.0, "battery", verbatim("On battery."))
    ledger.record_change(change)
    assert list(ledger.changes(0.0, 10.0)) == [change]
    assert list(ledger.contributions("p")) == [Contribution("a", 1, 10, ContributionState.CONFIRMED, peers=2)]
    assert ledger.position("p") == 77
    assert ledger.spent() == Spent()
    assert [each.begin for each in ledger.earned(0.0, 900.0)] == [0.0]
    assert ledger.proportion().share is None
    assert ledger._opened.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_failed_migration_leaves_no_file(ledger, path):
    with pytest.raises(sqlite3.OperationalError):
        open_ledger(path, 1.0, (MIGRATIONS[0], "NONSENSE;"))
    assert list(path.parent.iterdir()) == []
    ledger.record("p", contribution("a"))
    assert len(ledger.contributions()) == 1


def test_a_full_disk_is_said_and_what_was_recorded_is_kept(ledger):
    ledger.record("p", contribution("first"))
    pages = ledger._opened.execute("PRAGMA page_count").fetchone()[0]
    ledger._opened.execute(f"PRAGMA max_page_count = {pages}")
    kept = []

    def fill():
        for number in range(10_000):
            ledger.record("p", contribution(f"name-{number}"))
            kept.append(f"name-{number}")

    with pytest.raises(StorageError) as caught:
        fill()
    assert in_english(caught.value.title).startswith("The disk is full: the ledger ")
    assert [each.id for each in ledger.contributions()] == ["first", *kept]
    ledger._opened.execute("PRAGMA max_page_count = 1000000")
    ledger.record("p", contribution("after"))
    assert ledger.contributions()[-1].id == "after"


def test_a_ledger_held_by_another_program_is_said(path):
    with contextlib.closing(SqliteLedger(path, patience=0.05)) as ledger:
        ledger.record("p", contribution("a"))
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with raises(StorageError, match="is locked by another program"):
                ledger.record("p", contribution("b"))


def test_one_for_the_engine_is_waited_for_briefly_once_it_is_open(path):
    with contextlib.closing(SqliteLedger(path, once_open=0.05)) as ledger:
        ledger.record("p", contribution("a"))
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            with raises(StorageError, match="is locked by another program"):
                ledger.record("p", contribution("b"))
            assert time.monotonic() - begun < BUSY_SECONDS / 2


def test_a_missing_folder_is_said(tmp_path):
    ledger = SqliteLedger(tmp_path / "none" / "ledger.sqlite")
    with raises(StorageError, match="No such file or directory"):
        ledger.totals()


def test_a_folder_in_its_place_is_said(ledger, path):
    path.mkdir()
    with raises(StorageError, match="cannot be opened"):
        ledger.totals()


def test_a_number_beyond_all_measure_is_said(ledger):
    with pytest.raises(StorageError):
        ledger.record("p", Contribution("a", epoch=2**70, samples=1, state=PENDING))


def test_every_shade_of_a_failure_gets_the_words_of_its_kind(path):
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY_DIRECTORY
    assert in_english(storage_error(path, error).title) == f"The ledger {path} cannot be written."


# --- crashes

WRITER = """
import sys
from pathlib import Path
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.record.contributions import Contribution, ContributionState
ledger = SqliteLedger(Path(sys.argv[1]))
for number in range(10**6):
    for state in (ContributionState.PENDING, ContributionState.CONFIRMED):
        name = f"{sys.argv[2]}-{number}"
        ledger.record("p", Contribution(name, 1, 10, state))
        print(name, state.value, flush=True)
"""


def kill_while_writing(path, life, seconds):
    """The records that the writer acknowledged before it was killed."""
    command = [sys.executable, "-c", WRITER, str(path), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        first = writer.stdout.readline()
        time.sleep(seconds)  # a random moment for the kill: there is no condition to wait for
        writer.kill()
        rest = writer.stdout.read()
    return [line.split() for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]


def test_whatever_was_acknowledged_survives_kills_at_any_moment(path):
    moments, acknowledged = random.Random(2), {}
    for life in range(20):
        said = kill_while_writing(path, life, moments.uniform(0, 0.05))
        assert said
        acknowledged |= dict(said)
        ledger = SqliteLedger(path)
        found = {each.id: each.state.value for each in ledger.contributions()}
        check = ledger._opened.execute("PRAGMA integrity_check").fetchall()
        ledger.close()
        assert check == [("ok",)]
        for name, state in acknowledged.items():
            # a record that was written but not acknowledged may be one state further
            assert found[name] in (state, "confirmed")


def test_samples_that_sum_to_more_than_64_bits_keep_nothing_from_being_read(ledger):
    most = 2**62
    for number in range(4):
        ledger.record("p", Contribution(f"c{number}", 1, most, CONFIRMED, swarm=most))
        ledger.record("p", Contribution(f"l{number}", 1, most, LOST, verbatim("why")))
    assert ledger.totals().confirmed.samples > most
    assert [each.tally.contributions for each in ledger.earned(0, 2e9)] == [4, 4]
    assert ledger.lost_reasons()[verbatim("why")].contributions == 4
    assert ledger.proportion().samples > most
