"""A process of a volunteer that trains is killed or hangs: single cases of `make test-faults`."""

import contextlib
import itertools
import math
import signal
import time
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
from faults import disk, start, stop
from faults.churn import JOIN_SECONDS, End, above, curve, is_late
from faults.family import Role, ranks_in
from faults.kill import PART
from faults.recovery import kill_one
from faults.rows import Rows, attempted, git, recent, stored, this_commit, write_table
from faults.soak import growth
from faults.volunteer import Entry, damage, volunteer
from report import Row

from families import alive, lives
from small_disks import small_disk
from terminals import GENTLY, is_event, wait_until

RECOVERY_SECONDS = 150
"""Seconds within which a busy computer notices the fault, joins again and has a contribution confirmed."""


@pytest.fixture
def trained(practice, tmp_path):
    with volunteer(tmp_path / "home", practice, share=GENTLY["compute.share_using"]) as made:
        made.wait_until_training()
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "role",
    [
        Role.FRONT_END,
        Role.P2PD,
        Role.WORKER,
        pytest.param(Role.DHT, marks=pytest.mark.long),
        pytest.param(Role.GRADIENTS, marks=pytest.mark.long),
        pytest.param(Role.STATE, marks=pytest.mark.long),
    ],
)
def test_a_killed_process_costs_no_acknowledged_contribution_and_training_goes_on(trained, role):
    seen = kill_one(trained, role, RECOVERY_SECONDS)
    assert seen.back is not None, seen
    assert (seen.lost, seen.doubled, seen.left, seen.same_identity) == (0, 0, [], True)


RANK_LOST = "CPU stopped training: its process ended or does not answer."
LOST_WITH_RANK = "a device stopped or ran out of memory before its part was added up"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)], ids=lambda each: each.name
)
def test_a_lost_rank_costs_no_acknowledged_contribution_and_the_same_worker_trains_on(practice, tmp_path, how):
    with volunteer(tmp_path / "home", practice, share=GENTLY["compute.share_using"], device="cpu*2") as made:
        family = made.wait_until_training()
        (rank,) = ranks_in(family)
        before = made.ledger()
        rank.send_signal(how)
        made.running.wait_for(is_event("problem", title=RANK_LOST), RECOVERY_SECONDS)
        noticed = time.time()
        wait_until(lambda: made.first_confirmed(noticed), RECOVERY_SECONDS)
        assert not lives(rank)
        assert made.family().roles == family.roles
        leaving = made.running.family()
        made.running.finish()
        assert not alive(psutil.wait_procs(leaving, 5)[1])
        assert damage(before, made.ledger(), made.acknowledged()) == (0, 0)
        assert_ledger_is_what_was_shown(made)
        of_rank = [each for each in made.running.named("contribution") if each["reason"] == LOST_WITH_RANK]
        assert sum(each["samples"] for each in of_rank) <= made.running.named("joined")[0]["step_batch"]


def assert_ledger_is_what_was_shown(made):
    """Each contribution was pending, then settled once, and has a row with that end; the sums are those of the farewell."""
    shown, ledger, (left,) = defaultdict(list), made.ledger(), made.running.named("left")
    for event in made.running.named("contribution"):
        shown[event["id"]].append(event)
    assert {name: (each.state, each.samples) for name, each in ledger.items()} == {
        name: (events[-1]["state"], events[-1]["samples"]) for name, events in shown.items()
    }
    ends = ["pending", "confirmed"], ["pending", "lost"], ["pending"]
    assert all([event["state"] for event in events] in ends for events in shown.values()), shown
    for state in ("confirmed", "lost", "pending"):
        samples = sum(each.samples for each in ledger.values() if each.state == state)
        assert left["totals"][state]["samples"] == samples


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_stopped_p2pd_is_noticed_and_training_goes_on():
    number = stop.ROLES.index(Role.P2PD)
    with contextlib.closing(stop.measure(range(number, number + 1))) as measured:
        row = next(measured)
    assert row["role"] == Role.P2PD
    assert [each.name for each in stop.judged([row]) if each.missed] == [], row


@pytest.mark.timeout(600)
def test_of_front_ends_that_start_at_the_same_time_one_runs_and_the_others_say_so(practice, tmp_path):
    row = start.started_at_once(tmp_path / "home", practice, 4)
    assert (row["running"], row["refused"], row["others"]) == (1, 3, []), row


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("exit code 1: skep is already running in FOLDER (process 12).", True),
        ("exit code 1: Traceback (most recent call last):", False),
        ("exit code 2: skep is already running in FOLDER (process 12).", False),
    ],
)
def test_a_front_end_that_ends_otherwise_is_not_taken_for_one_that_was_refused(words, refusal):
    assert start.is_refusal(words) == refusal


@pytest.fixture
def place(tmp_path):
    with contextlib.ExitStack() as ending, small_disk(tmp_path / "disk", disk.KILOBYTES):
        yield disk.Place(tmp_path, ending)


@pytest.mark.parametrize("how", disk.HINDRANCES)
def test_a_write_that_is_hindered_is_one_sentence_and_done_when_it_can_be(place, how):
    row = disk.by_verb("identity", how)(place)
    assert [each.name for each in disk.judged([row]) if each.missed] == [], row


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", [disk.while_training, disk.while_data_comes, disk.hosting])
def test_a_disk_that_becomes_full_while_it_trains_or_hosts_costs_nothing(place, case):
    row = case(place)
    assert [each.name for each in disk.judged([row]) if each.missed] == [], row


def test_a_loss_without_a_sentence_and_a_traceback_are_counted():
    said = disk.Said(None, [], disk.traces("Traceback (most recent call last):"))
    before = {"settings": {"a": 1}, "contributions": ["a", "b"], "identity": b"1"}
    lost = disk.missing(before, {"settings": {"a": 1}, "contributions": ["b", "c"], "identity": b"2"})
    assert lost == ["contributions", "identity"]
    rows = disk.judged([disk.row("settings", "full", said, lost, recovered=False)])
    assert [each.value for each in rows] == [1, 1, 1, 1]


BEFORE = {"a": Entry(1, 64, "confirmed", 10.0, 12.0), "b": Entry(2, 64, "pending", 13.0, 0.0)}
SETTLED = BEFORE | {"b": Entry(2, 64, "confirmed", 13.0, 15.0)}


def test_a_ledger_that_goes_on_is_not_damaged():
    lost = SETTLED | {"b": Entry(2, 64, "lost", 13.0, 15.0), "c": Entry(3, 64, "confirmed", 16.0, 17.0)}
    assert damage(BEFORE, SETTLED, {"a"}) == (0, 0)
    assert damage(BEFORE, lost, {"a"}) == (0, 0)


@pytest.mark.parametrize(
    "after",
    [
        {"b": SETTLED["b"]},
        SETTLED | {"a": Entry(1, 64, "lost", 10.0, 12.0)},
        SETTLED | {"a": Entry(1, 32, "confirmed", 10.0, 12.0)},
    ],
)
def test_a_confirmed_contribution_that_is_gone_or_changed_is_lost(after):
    assert damage(BEFORE, after, {"b"}) == (1, 0)


def test_what_a_front_end_has_shown_as_confirmed_must_be_in_the_ledger():
    assert damage({}, BEFORE, {"a", "b"}) == (1, 0)
    assert damage({}, BEFORE, {"a", "z"}) == (1, 0)


def test_two_confirmed_contributions_of_one_epoch_are_counted_twice():
    again = SETTLED | {"c": Entry(2, 64, "confirmed", 16.0, 17.0)}
    assert damage(BEFORE, again, {"a", "b", "c"}) == (0, 1)
    assert damage(again, again | {"d": Entry(3, 64, "confirmed", 18.0, 19.0)}, set()) == (0, 0)


def test_growth_is_found_within_runs_though_their_levels_differ():
    noise = itertools.cycle([-1.0, 1.0, 0.5, -0.5])
    rows = [
        {"run": run, "epoch": epoch, "memory": 500.0 + 300 * level + 0.02 * epoch + next(noise)}
        for level, run in enumerate("ab")
        for epoch in range(0, 500, 10)
    ]
    found = growth(rows, "memory")
    assert found.slope == pytest.approx(20.0, abs=1.5)
    assert found.slope < found.bound < 24.0
    waves = [row | {"memory": row["memory"] + 4 * math.sin(row["epoch"] / 50)} for row in rows]
    mixed = [row | {"memory": row["memory"] + 4 * math.sin(row["epoch"] * 2.4)} for row in rows]
    assert width(waves) > 2 * width(mixed)
    assert growth(rows[:6], "memory") is None


def width(rows):
    found = growth(rows, "memory")
    return found.bound - found.slope


def test_losses_are_compared_at_equal_samples_and_at_equal_epochs():
    calm = [End(0, 0, 10.0), End(1, 100, 5.0), End(2, 200, 1.0)]
    busy = [End(0, 0, 10.0), End(1, 75, 4.0), End(2, 150, 3.3)]
    assert above(calm, busy, lambda end: end.computed) == 10.0
    assert above(calm, busy, lambda end: end.epoch) == pytest.approx(230.0)
    longer = [End(1, 100, 4.0), End(3, 300, 0.8)]
    assert above(calm, longer, lambda end: end.computed) == pytest.approx(140.0)


def test_samples_of_a_killed_peer_are_counted():
    stays, killed = peer_that_said((1, 8), (3, 16), ends=(2, 4)), peer_that_said((1.5, 8), ends=())
    assert curve(SimpleNamespace(peers=[stays, killed])) == [End(0, 16, 2.0), End(1, 24, 4.0)]


def peer_that_said(*computed, ends):
    """(time, samples so far) and the times at which an epoch ended for it, with a loss as large."""
    events = [{"event": "computed", "at": at, "samples": samples} for at, samples in computed]
    events += [{"event": "epoch", "epoch": number, "at": at, "loss": float(at)} for number, at in enumerate(ends)]
    return SimpleNamespace(named=lambda name: [each for each in events if each["event"] == name])


@pytest.mark.parametrize(
    ("joined", "ended", "late"),
    [
        (JOIN_SECONDS - 1, JOIN_SECONDS + 90, False),
        (JOIN_SECONDS + 1, JOIN_SECONDS + 90, True),
        (None, JOIN_SECONDS - 1, False),
        (None, JOIN_SECONDS + 1, True),
    ],
)
def test_a_newcomer_that_joins_late_or_never_is_counted_unless_it_was_killed_before(joined, ended, late):
    said = [] if joined is None else [{"event": "joined", "at": 7.0 + joined}]
    peer = SimpleNamespace(named=lambda name: [each for each in said if each["event"] == name])
    assert is_late(peer, 7.0, 7.0 + ended) == late


def test_rows_of_this_commit_are_counted_at_the_next_start(tmp_path):
    rows = Rows(PART, tmp_path)
    assert rows.of_this_commit() == []
    rows.append({"number": 0})
    assert [row["number"] for row in Rows(PART, tmp_path).of_this_commit()] == [0]
    file = tmp_path / "faults-kill.jsonl"
    file.write_text(file.read_text().replace(this_commit(), "another"))
    assert Rows(PART, tmp_path).of_this_commit() == []


def not_training():
    raise TimeoutError("no confirmed contribution")


def test_a_trial_that_ends_without_a_result_is_a_row_that_misses_its_bound():
    failed = attempted({"number": 1}, not_training)
    assert failed == {"number": 1, "failed": "TimeoutError: no confirmed contribution"}
    part = replace(PART, judged=lambda rows: [])
    assert attempted({"number": 0}, dict, [("back", 1.0)]) == {"number": 0, "failed": "", "back": 1.0}
    assert [(each.value, each.missed) for each in part.quantities([failed, {"failed": ""}])] == [(1, True)]
    assert [(each.value, each.missed) for each in part.quantities([{"failed": ""}])] == [(0, False)]
    assert part.quantities([{"number": 0}]) == []


def test_rows_are_not_stored_when_what_is_measured_has_changed_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr("faults.rows.ROOT", tmp_path)
    commit_change("README.md", tmp_path)
    rows = Rows(PART, tmp_path / "rows")
    rows.append({"number": 0})
    commit_change("client/engine.py", tmp_path)
    with pytest.raises(RuntimeError, match="changed"):
        rows.append({"number": 1})
    assert [each["number"] for each in stored(tmp_path / "rows" / "faults-kill.jsonl")] == [0]


def test_table_says_of_a_part_that_is_not_whole_how_many_trials_it_has(tmp_path):
    part = replace(PART, count=2, judged=lambda rows: [Row("lost", 0, "", 0, [0.0] * len(rows))])
    rows = Rows(part, tmp_path)
    for whole in (False, True):
        rows.append({"number": 0})
        write_table([part], tmp_path)
        assert ("1 of 2 trials" in (tmp_path / "faults.md").read_text()) != whole


def test_table_shows_the_last_whole_commit_and_later_ones():
    part = replace(PART, count=2)
    first, whole, later = ({"commit": name} for name in ("first", "whole", "later"))
    assert recent(part, [first, later]) == [("first", [first]), ("later", [later])]
    assert recent(part, [first, first, whole, whole, later]) == [("whole", [whole, whole]), ("later", [later])]


def commit_change(name, folder):
    """Of that file, in the repository that `folder` becomes by that."""
    git("init", "-q")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("changed")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")


def test_rows_are_outdated_by_changes_of_what_is_measured_only(tmp_path, monkeypatch):
    monkeypatch.setattr("faults.rows.ROOT", tmp_path)
    commits = []
    for changed in ("client/engine.py", "README.md", "tests/core/test_text.py", "tests/families.py"):
        commit_change(changed, tmp_path)
        commits.append(this_commit())
    assert len(set(commits[:3])) == 1
    assert commits[3] != commits[0]
    (tmp_path / "client/engine.py").write_text("not committed")
    assert this_commit() == f"{commits[3]}+"
