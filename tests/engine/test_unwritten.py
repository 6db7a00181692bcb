"""Rows that a ledger refused, on a stand-in and on a real ledger whose disk is full."""

import contextlib

import pytest

from english import raises
from fakes import FakeLedger, StillClock
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.errors import StorageError
from skep.core.policy.allowance import Change, Reaction
from skep.core.record.contributions import Contribution, ContributionState, Evaluation
from skep.core.record.usage import Quarter, Spent
from skep.core.session import effects as e
from skep.core.text import Text, verbatim
from skep.engine.unwritten import UNTRIED_SECONDS, Unwritten
from small_disks import filled, read_only, small_disk

FULL = StorageError(verbatim("The disk is full."))
LOCKED = StorageError(verbatim("The ledger is locked."))
PENDING, CONFIRMED = ContributionState.PENDING, ContributionState.CONFIRMED
MINUTE = Spent(60.0, 60.0, 50.0, 9000.0, 60.0)


def record(name, state=CONFIRMED):
    return e.Record("p", Contribution(name, 3, 8, state))


def usage(begin):
    return e.RecordUsage(Quarter("p", begin, MINUTE))


ROWS = [
    record("a", PENDING),
    record("a"),
    record("b", PENDING),
    e.SavePosition("p", 8),
    e.SavePosition("p", 16),
    e.SaveEvaluation("p", Evaluation(3, 2.5)),
    e.RecordChange(Change(1000.0, "p", 0.5, "away", Text("rule.on_battery"))),
    e.RecordReaction(Reaction(1000.0, "input", 0.2, 0.25)),
    usage(900.0),
    usage(900.0),
    usage(1800.0),
]


def refuse_all(unwritten, ledger, rows=ROWS):
    with pytest.raises(StorageError):
        unwritten.write(ledger, rows[0])
    for row in rows[1:]:
        unwritten.write(ledger, row)  # kept with it


def assert_all_are_there(ledger):
    assert list(ledger.contributions()) == [record("a").contribution, record("b", PENDING).contribution]
    assert ledger.position("p") == 16
    assert [each.epoch for each in ledger.evaluations("p")] == [3]
    assert [each.at for each in ledger.changes(0.0, 2000.0)] == [1000.0]
    assert [each.at for each in ledger.reactions(9)] == [1000.0]
    assert list(ledger.usage(0.0, 4000.0)) == [Quarter("p", 900.0, MINUTE.plus(MINUTE)), Quarter("p", 1800.0, MINUTE)]


def test_every_kind_of_row_is_written_later_and_once():
    ledger, unwritten = FakeLedger(failing=FULL), Unwritten()
    refuse_all(unwritten, ledger)
    assert list(unwritten.settled()) == ["a"]
    ledger.failing = None
    for _ in range(2):
        unwritten.catch_up(ledger)
        assert_all_are_there(ledger)


class Refusing(FakeLedger):
    """Refuses each row, as one that another program holds."""

    tries = 0

    def record(self, project_id, contribution):
        self.tries += 1
        raise LOCKED


def test_a_ledger_that_refuses_is_not_tried_again_for_each_row():
    ledger, clock = Refusing(), StillClock(100.0)
    unwritten = Unwritten(clock)
    refuse_all(unwritten, ledger, [record("a"), record("b"), record("c")])
    assert ledger.tries == 1
    clock.now += UNTRIED_SECONDS
    with pytest.raises(StorageError):
        unwritten.write(ledger, record("d"))
    unwritten.write(ledger, record("e"))
    assert ledger.tries == 2
    with pytest.raises(StorageError):
        unwritten.catch_up(ledger)
    assert ledger.tries == 3
    assert list(unwritten.settled()) == ["b", "c", "d", "e", "a"]


class Soon(FakeLedger):
    """Refuses the first tries, as one that another program holds for a moment."""

    tries = 0

    def record(self, project_id, contribution):
        self.tries += 1
        if self.tries <= 3:
            raise LOCKED
        super().record(project_id, contribution)


def test_at_the_end_it_tries_for_a_while():
    ledger, unwritten = Soon(), Unwritten()
    refuse_all(unwritten, ledger, [record("a"), record("b")])
    unwritten.write_the_rest(ledger)
    assert list(unwritten.settled()) == []
    assert [each.id for each in ledger.contributions()] == ["a", "b"]
    hopeless = Refusing()
    refuse_all(unwritten, hopeless, [record("c")])
    unwritten.write_the_rest(hopeless)
    assert list(unwritten.settled()) == ["c"]


def test_a_row_that_is_always_refused_does_not_keep_the_others_from_being_written(tmp_path):
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite")) as ledger:
        unwritten = Unwritten()
        refuse_all(unwritten, ledger, [e.SavePosition("q", 2**70)])
        unwritten._rows += ROWS[1:3]
        with pytest.raises(StorageError):
            unwritten.catch_up(ledger)
        with pytest.raises(StorageError):
            unwritten.catch_up(ledger)
        assert [each.id for each in ledger.contributions()] == ["a", "b"]


def test_a_ledger_whose_disk_is_full_goes_on_when_it_is_not_and_nothing_is_lost_or_doubled(tmp_path):
    names = [f"{number}" for number in range(100)]
    with (
        small_disk(tmp_path / "disk", 8192) as disk,
        contextlib.closing(SqliteLedger(disk / "ledger.sqlite")) as ledger,
    ):
        ledger.record("p", record("before").contribution)
        unwritten = Unwritten()
        with filled(disk):
            for name in names:
                with contextlib.suppress(StorageError):
                    unwritten.write(ledger, record(name))
                    unwritten.write(ledger, usage(900.0))
            with raises(StorageError, match="disk is full"):
                unwritten.catch_up(ledger)
            acknowledged = [each.id for each in ledger.contributions()]
            assert acknowledged[0] == "before"
            assert len(acknowledged) < len(names)
        unwritten.catch_up(ledger)
        assert sorted(each.id for each in ledger.contributions()) == sorted(["before", *names])


@contextlib.contextmanager
def on_a_small_disk(tmp_path):
    """The disk, and a ledger on it with one contribution, which is opened by the next call."""
    with (
        small_disk(tmp_path / "disk", 2048) as disk,
        contextlib.closing(SqliteLedger(disk / "ledger.sqlite")) as ledger,
    ):
        ledger.record("p", record("before").contribution)
        ledger.close()
        yield disk, ledger


def test_a_ledger_on_a_disk_that_is_read_only_goes_on_when_it_is_not(tmp_path):
    with on_a_small_disk(tmp_path) as (disk, ledger):
        unwritten = Unwritten()
        with read_only(disk):
            with raises(StorageError, match=r"The ledger .* cannot be (written|opened)\."):
                unwritten.write(ledger, record("after"))
            ledger.close()
        unwritten.catch_up(ledger)
        assert [each.id for each in ledger.contributions()] == ["before", "after"]


def test_a_ledger_that_is_opened_on_a_full_disk_can_be_read_and_written_when_there_is_room(tmp_path):
    with on_a_small_disk(tmp_path) as (disk, ledger):
        unwritten = Unwritten()
        with filled(disk):
            assert [each.id for each in ledger.contributions()] == ["before"]
            with raises(StorageError, match="disk is full"):
                unwritten.write(ledger, record("after"))
            with contextlib.closing(SqliteLedger(disk / "ledger.sqlite")) as another:
                assert [each.id for each in another.contributions()] == ["before"]
        unwritten.catch_up(ledger)
        assert [each.id for each in ledger.contributions()] == ["before", "after"]


def test_a_new_ledger_on_a_full_disk_leaves_nothing_half_made(tmp_path):
    with (
        small_disk(tmp_path / "disk", 1024) as disk,
        contextlib.closing(SqliteLedger(disk / "ledger.sqlite")) as ledger,
    ):
        with filled(disk):
            with raises(StorageError, match=r"disk is full: the ledger .*ledger\.sqlite"):
                ledger.totals()
            assert [path.name for path in disk.iterdir()] == ["ballast"]
        ledger.record("p", record("a").contribution)
        assert [each.id for each in ledger.contributions()] == ["a"]
