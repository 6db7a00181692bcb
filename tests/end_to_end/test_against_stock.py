"""The comparison with stock: what is judged, rejected and counted, and the shortest case of what it measures."""

import itertools
import runpy

import pytest
from against_stock import joining, rates, rows, running, shaped, wire
from against_stock.rows import Row
from peers import SkepPeer, described
from report import UNMEASURED, Unmeasured

from network_namespaces import why_not
from skep.adapters.storage.identity import FileIdentity
from skep.core.project.data import Shapes
from skep.core.session import wire as lines
from skep.core.session.messages import ContributionPending, WorkerProgress
from skep.core.session.phases import SwarmProgress

SYNC = {
    "grad_compression": "none",
    "state_compression": "none",
    "average_state_every": 1,
    "size_adaptive_threshold": 65537,
    "powersgd": None,
}
NOTHING_YET = SwarmProgress(0, 0, None, 0.0, 1.0, None, 0, 64, 0.0, 0.0, 0.0, 0, 0)


# --- judging and storing


def test_a_row_is_judged_beside_the_other_or_alone():
    assert Row("a", "s", [2.0], [4.0], at_most=0.5).judged == 0.5
    assert not Row("a", "s", [2.0], [4.0], at_most=0.5).missed
    assert Row("a", "s", [2.1], [4.0], at_most=0.5).missed
    assert Row("a", "s", [2.0], [4.0], at_least=0.6).missed
    assert Row("a", "s", [2.1], at_most=2.0).missed


def test_a_bound_on_our_own_value_does_not_look_at_the_other():
    row = Row("a", "s", [2.1], [4.0], at_most=2.0, own=True)
    assert (row.judged, row.missed, row.bound) == (2.1, True, "≤ 2 s")
    assert Row("a", "s", [2.1], [4.0], at_most=2.0).bound == "≤ 2 of stock"


def test_runs_that_are_rejected_are_repeated_and_counted():
    outcomes = iter([1, Unmeasured("no round"), 2])

    def run():
        outcome = next(outcomes)
        if isinstance(outcome, Unmeasured):
            raise outcome
        return outcome

    assert rows.valid_runs(run, 2) == ([1, 2], ["no round"])


def test_a_row_of_which_many_runs_are_rejected_is_not_measured():
    outcomes = itertools.cycle([1, 2, None])

    def run():
        if (outcome := next(outcomes)) is None:
            raise Unmeasured("no round")
        return outcome

    with pytest.raises(Unmeasured, match="3 runs were rejected; the last one: no round"):
        rows.valid_runs(run, 9)


def test_a_measure_that_cannot_be_taken_replaces_its_earlier_row(tmp_path, monkeypatch):
    def fails(_repeats):
        raise Unmeasured("the machine was busy")

    rows.write(
        [Row("its earlier row", "s", [1.0], measure="speed"), Row("other", "s", [2.0], measure="stop")],
        tmp_path / "rows",
    )
    comparison = runpy.run_path(str(rows.__file__).replace("rows.py", "__main__.py"))
    monkeypatch.setitem(comparison["MEASURES"], "speed", fails)
    monkeypatch.setattr("sys.argv", ["against_stock", "--only", "speed", "--to", str(tmp_path / "rows")])
    assert comparison["main"]() == UNMEASURED
    table = (tmp_path / "rows.md").read_text()
    assert "not measured: the machine was busy" in table
    assert ("its earlier row" in table, "other" in table) == (False, True)


def test_rows_of_other_measures_are_kept_with_their_date_and_machine(tmp_path):
    to = tmp_path / "rows"
    made = [
        Row("a", "s", [1.0], measure=name, date=f"2026-01-0{day}", machine=f"computer {day}", commit=f"c{day}")
        for day, name in enumerate("xyz", 1)
    ]
    rows.write(made, to)
    assert [(each.measure, each.machine) for each in rows.kept(to.with_suffix(".json"), "xy", "x")] == [
        ("y", "computer 2")
    ]
    assert to.with_suffix(".md").read_text().count("2026-01-02 | c2 | computer 2") == 1


# --- what is counted


def test_a_sample_of_ours_counts_when_its_step_batch_is_done():
    peer = object.__new__(SkepPeer)
    peer._taken, peer.joined = 0, {"step_batch": 8}

    def counted(samples, position):
        said = peer._understand(lines.encode(WorkerProgress(NOTHING_YET, "a", samples, position)))
        return [event["counted"] for event in said if event["event"] == "progress"], len(said)

    assert counted(7, 16) == ([0], 1)  # drawn, and not yet in a step batch that is done
    assert counted(13, 24) == ([8], 2)
    peer._understand(lines.encode(ContributionPending("a", 3, 21)))
    assert counted(9, 40) == ([29], 2)


class Said:
    """A peer of which only what it said is known."""

    def __init__(self, *history):
        self.history = history

    def named(self, name):
        return [event for event in self.history if event["event"] == name]


def contribution(epoch, samples, peers):
    told = {"epoch": epoch, "samples": samples}
    return {"event": "contribution"} | told, {"event": "confirmed" if peers else "lost", "peers": peers} | told


def test_real_samples_are_those_of_all_peers_in_the_round_of_an_epoch():
    first = Said(*contribution(1, 30, 1), *contribution(2, 40, 1))
    second = Said(*contribution(1, 32, 1), *contribution(3, 24, 1))
    assert running.samples_of_rounds([first, second], "contribution", range(1, 4)) == [62, 40, 24]


def test_confirmed_samples_are_those_averaged_with_another_peer():
    first = Said(*contribution(1, 30, 1), *contribution(2, 40, 0))
    second = Said(*contribution(1, 32, 1), *contribution(2, 24, 1))
    assert running.samples_of_rounds([first, second], "confirmed", range(1, 3)) == [62, 24]


def test_a_round_is_missing_unless_every_peer_averaged_with_another():
    first = Said(*contribution(1, 30, 1), *contribution(2, 40, 1), *contribution(3, 40, 1))
    second = Said(*contribution(1, 32, 1), *contribution(2, 24, 0))
    assert running.missing_rounds([first, second], range(1, 4)) == [2, 3]


def progress(epoch, seconds):
    return {"event": "progress", "epoch": epoch, "seconds": seconds}


def test_only_whole_epochs_have_a_length():
    seen = [
        progress(3, 1.0),
        progress(4, 2.0),
        progress(4, 5.0),
        progress(5, 12.0),
        progress(7, 30.0),
        progress(8, 33.0),
    ]
    assert running.seconds_of_epochs(seen) == [10.0, 3.0]
    with pytest.raises(Unmeasured):
        running.typical_epoch(seen[:3])


# --- epochs that really take so long


def test_a_target_is_corrected_by_what_its_epochs_took():
    assert joining.corrected(100, 10, 20.0) == 50
    assert joining.corrected(3, 5, 60.0) == 2


def epochs_of(seconds, count=4):
    return [progress(number, number * seconds) for number in range(count)]


@pytest.fixture
def targets(monkeypatch):
    """The target batches that were tried. A join takes 10 s, and an epoch 0.1 s per sample."""
    tried = []

    def joins(target, repeats):
        tried.append(target)
        return [10.0] * repeats, epochs_of(target / 10)

    monkeypatch.setattr(joining, "rate_of_both", lambda: 15.0)
    monkeypatch.setattr(joining, "joins", joins)
    return tried


def test_the_target_is_corrected_by_the_epochs_during_the_joins(targets):
    (row,) = joining.measure_newcomers(2, length=5)
    assert targets == [75, 50]
    assert (row.skep, row.missed) == ([2.0], False)
    assert "2 epochs of 50 samples took 5 (5 to 5) s" in row.note


@pytest.mark.parametrize("seconds", [3.9, 6.1])
def test_joins_at_epochs_that_stay_a_fifth_longer_or_shorter_are_rejected(monkeypatch, targets, seconds):
    monkeypatch.setattr(joining, "joins", lambda target, repeats: ([10.0] * repeats, epochs_of(seconds)))
    with pytest.raises(Unmeasured, match="epochs of 5 s: they took"):
        joining.measure_newcomers(2, length=5)


@pytest.mark.parametrize("late", [float("inf"), 90.0])
@pytest.mark.parametrize("seconds", [5.0, 12.0])
def test_a_newcomer_that_is_late_counts_at_once_also_at_longer_epochs(monkeypatch, targets, seconds, late):
    monkeypatch.setattr(joining, "joins", lambda *_: ([10.0, late], epochs_of(seconds)))
    (row,) = joining.measure_newcomers(2, length=5)
    assert (row.skep, row.missed) == ([1.0], True)


def test_a_newcomer_that_fails_counts_also_when_no_epoch_ended(monkeypatch, targets):
    monkeypatch.setattr(joining, "joins", lambda *_: ([float("inf")], epochs_of(5.0, count=1)))
    (row,) = joining.measure_newcomers(1, length=5)
    assert (row.skep, row.missed) == ([0.0], True)


# --- the wire


def test_two_peers_send_each_gradient_and_each_parameter_once_per_epoch():
    shapes = Shapes({(100,): 2, (256, 257): 1})
    assert wire.must_send(shapes, SYNC) == 2 * 4 * (200 + 65792)
    assert wire.must_send(shapes, SYNC | {"average_state_every": 4}) == 1.25 * 4 * (200 + 65792)
    adaptive = SYNC | {"grad_compression": "size-adaptive", "state_compression": "size-adaptive"}
    assert wire.must_send(shapes, adaptive) == 2 * (2 * 200 + 65792)
    low_rank = SYNC | {"grad_compression": "float16", "powersgd": {"rank": 4, "min_compression_ratio": 0.5}}
    assert wire.must_send(shapes, low_rank) == 2 * 200 + 4 * (4 * 256 + 2 * 257) + 4 * (200 + 65792)


def test_the_model_of_the_wire_has_tensors_on_both_sides_of_the_threshold(tmp_path):
    # a seed peer is named, and not needed
    seed = f"/ip4/127.0.0.1/tcp/1/p2p/{FileIdentity(tmp_path / 'seed.id').peer_id}"
    assert 0.5 < wire.eight_bits_part(described(tmp_path, [seed], wire.MODEL, {})) < 0.95


# --- a slow link


@pytest.mark.timeout(600)
def test_a_state_comes_once_over_a_slow_link_that_is_interrupted():
    if reason := why_not():
        pytest.skip(reason)
    found = shaped.load_over("0.45 M", 4_000_000, down=18.0)  # the donor counts as stalled after 15 s
    assert found.seconds > found.ideal
    assert shaped.WHOLE <= found.states < 1.3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_both_kinds_say_how_long_their_epochs_take_and_what_is_in_them():
    rate, seconds, samples = rates.measure_epochs(1)
    assert all(rate.skep + rate.other + seconds.skep + seconds.other)
    assert min(samples.skep + samples.other) > 512
