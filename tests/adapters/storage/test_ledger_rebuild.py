"""Damaged ledgers: the file is kept under another name, and what can be read of it goes on in a new one."""

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from english import in_english, raises
from skep.adapters.storage.ledger_file import MIGRATIONS
from skep.adapters.storage.ledger_pages import PAGE
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.errors import DamagedFile, StorageError
from skep.core.policy.allowance import Change, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation
from skep.core.record.usage import Quarter, Spent
from skep.core.text import Text

COUNT = 900
REASON = Text("round.round_failed")
OLD = Path(__file__).with_name("old_ledgers")


@pytest.fixture
def path(home):
    return home.ledger_file


@pytest.fixture
def told():
    return []


@pytest.fixture
def ledger(path, told):
    """As the holder of the home's lock opens it."""
    with contextlib.closing(SqliteLedger(path, mended=told.append)) as made:
        yield made


def contribution(number, state=ContributionState.CONFIRMED):
    return Contribution(f"ä-{number}", number, 8, state, REASON, peers=3, swarm=2**40)


def fill(ledger):
    ledger.totals()
    ledger._opened.execute("BEGIN")  # so many transactions of their own would take long
    for number in range(COUNT):
        ledger.record("p", contribution(number, ContributionState.PENDING))
        if number < COUNT - 1:
            ledger.record("p", contribution(number))
        if number % 30 == 0:
            ledger.add_usage(Quarter("p", 900.0 * (number // 300), Spent(60.0, 50.0, 40.0, 1e6, 50.0)))
            ledger.save_evaluation("p", Evaluation(number, 2.5))
            ledger.record_change(Change(float(number), "p", 0.5, "away", REASON))
            ledger.record_reaction(Reaction(float(number), "input", 0.2, 0.25))
            ledger.save_position("p", 8 * number)
    ledger._opened.execute("COMMIT")


def content(ledger):
    """Everything in the ledger. The last contribution is pending, so that nothing but settled rows is protected."""
    return {
        "contributions": list(ledger.contributions()),
        "usage": list(ledger.usage(0.0, 1e9)),
        "evaluations": list(ledger.evaluations("p")),
        "changes": list(ledger.changes(0.0, 1e9)),
        "reactions": list(ledger.reactions(COUNT)),
        "position": ledger.position("p"),
    }


@pytest.fixture
def whole(path):
    """What is in a closed ledger."""
    with contextlib.closing(SqliteLedger(path)) as before:
        fill(before)
        return content(before)


def kept(path):
    return list(path.parent.glob("ledger.sqlite.damaged-????-??-??"))


def noise(path, begin, end):
    raw = path.read_bytes()
    end = min(end, len(raw))
    path.write_bytes(raw[:begin] + random.Random(3).randbytes(end - begin) + raw[end:])


def test_a_ledger_without_its_first_page_loses_nothing(ledger, path, told, whole):
    noise(path, 0, PAGE)
    damaged = path.read_bytes()
    assert content(ledger) == whole
    assert [in_english(each) for each in told] == [
        f"The ledger was damaged; skep continues with the {COUNT} contributions that could be read."
    ]
    assert [each.read_bytes() for each in kept(path)] == [damaged]
    assert str(kept(path)[0]) in in_english(told[0].hint)
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_half_a_ledger_the_first_half_is_kept(ledger, path, told, whole):
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2 + 7])
    found = content(ledger)["contributions"]
    assert COUNT // 4 < len(found) < COUNT
    assert len(told) == 1
    # an acknowledged contribution is there as it was, or not at all
    assert [each for each in found if each not in whole["contributions"]] == []
    assert len({each.id for each in found}) == len(found)


@pytest.mark.parametrize("content_left", [b"", b"something else entirely\n" * 9], ids=["empty", "another file"])
def test_of_nothing_a_new_ledger_is_made_and_said(ledger, path, told, whole, content_left):
    path.write_bytes(content_left)
    assert list(ledger.contributions()) == []
    assert in_english(told[0]) == "The ledger was damaged; skep continues with the 0 contributions that could be read."
    assert [each.read_bytes() for each in kept(path)] == [content_left]


def test_any_other_page_costs_only_its_own_rows(ledger, path, told, whole):
    pages = range(1, path.stat().st_size // PAGE, 4)
    for page in pages:
        copy = path.with_name(f"copy-{page}.sqlite")
        shutil.copy(path, copy)
        noise(copy, page * PAGE, (page + 1) * PAGE)
        with contextlib.closing(SqliteLedger(copy, mended=told.append)) as mended:
            found = content(mended)["contributions"]
        assert len(found) > COUNT - 60
        assert [each for each in found if each not in whole["contributions"]] == []
    assert len(told) > len(pages) // 2  # not of a page that nothing uses


def test_damage_that_appears_while_skep_runs_is_mended_and_the_call_is_carried_out_once(ledger, path, told):
    fill(ledger)
    whole = content(ledger)
    ledger._opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(PAGE)
        file.write(random.Random(4).randbytes(PAGE * 2))
    ledger._opened.execute("PRAGMA cache_size = 0")
    ledger._opened.execute("PRAGMA shrink_memory")
    spent = Spent(1.0, 1.0, 1.0, 1.0, 1.0)
    ledger.add_usage(Quarter("q", 0.0, spent))
    ledger.record("p", contribution(COUNT))
    found = content(ledger)["contributions"]
    assert len(told) == 1
    assert found[-1] == contribution(COUNT)
    assert [each for each in found[:-1] if each not in whole["contributions"]] == []
    assert ledger.spent("q") == spent


def test_what_was_not_copied_from_the_write_ahead_log_yet_is_read_from_it(tmp_path, ledger, path, told):
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite")) as running:
        fill(running)
        running.record("p", contribution(COUNT - 1))
        running.add_usage(Quarter("p", 0.0, Spent(1.0, 1.0, 1.0, 1.0, 1.0)))
        whole = content(running)
        for file in tmp_path.glob("ledger.sqlite*"):
            shutil.copy(file, path.with_name(file.name))  # as if it was killed
    path.write_bytes(b"")
    assert content(ledger) == whole
    assert len(list(path.parent.glob("ledger.sqlite.damaged-*-wal"))) == 1
    assert len(told) == 1


def test_of_several_states_of_a_row_the_latest_is_kept(ledger, path, told, whole):
    earlier = path.read_bytes()[PAGE:]
    with contextlib.closing(SqliteLedger(path)) as running:
        running.record("p", contribution(COUNT - 1))
        running.add_usage(Quarter("p", 0.0, Spent(1.0, 1.0, 1.0, 1.0, 1.0)))
        later = content(running)
    path.write_bytes(path.read_bytes() + earlier)  # as pages that are free again
    noise(path, 0, PAGE)
    assert content(ledger) == later != whole
    assert len(told) == 1


def test_damage_is_found_at_the_start_wherever_it_is(ledger, path, told, whole):
    noise(path, path.stat().st_size - PAGE, path.stat().st_size)
    ledger.projects()
    assert len(told) == 1


def test_a_damaged_ledger_of_an_earlier_version_is_rebuilt_and_migrated(ledger, path, told):
    for version in range(1, len(MIGRATIONS)):
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.executescript((OLD / f"{version}.sql").read_text(encoding="utf-8"))
        raw = path.read_bytes()
        path.write_bytes(raw[:200] + b"\xff" * 3000 + raw[3200:])  # the tables' declarations
        assert ledger.lost_reasons() == {REASON: ledger.totals().lost}
        assert [each.id for each in ledger.contributions()] == ["a", "b", "c"]
        assert ledger.position("p") == 4096
        assert len(told) == version
        ledger.close()
        path.unlink()


def test_a_second_damage_on_one_day_keeps_both_files(ledger, path, told):
    for content_left in (b"first", b"second"):
        ledger.close()
        path.write_bytes(content_left)
        ledger.totals()
    assert {each.read_bytes() for each in path.parent.glob("*.damaged-*")} == {b"first", b"second"}
    assert len(told) == 2


def test_only_the_holder_of_the_home_rebuilds(path, whole):
    path.write_bytes(b"")
    with contextlib.closing(SqliteLedger(path)) as other, raises(DamagedFile, match="is damaged") as caught:
        other.totals()
    assert caught.value.exit_code == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_damaged_ledger_of_a_later_skep_is_refused_and_not_touched(ledger, path, told, whole):
    with contextlib.closing(sqlite3.connect(path)) as later:
        later.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    noise(path, 200, PAGE)
    before = path.read_bytes()
    with raises(StorageError, match="later version"):
        ledger.totals()
    assert (path.read_bytes(), told, kept(path)) == (before, [], [])
