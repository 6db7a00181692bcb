"""The epochs of other peers when one of three is paused or slowed, with hivemind's tracker and with ours."""

import math
from functools import partial
from statistics import mean
from types import SimpleNamespace

import pytest
from hivemind.optim.progress_tracker import ProgressTracker
from hivemind.p2p import PeerID
from hivemind.utils import get_dht_time

from books import TARGET, Table, epochs
from skep.worker.swarm.claims import all_there
from skep.worker.swarm.tracker import LiveProgressTracker


def pause(peer):
    peer.pause()


def slow_down(peer):
    peer.share = 0.2


@pytest.mark.parametrize("event", [pause, slow_down])
def test_ours_fills_every_epoch(event):
    samples = epochs(LiveProgressTracker, event, 16)
    undisturbed, after = mean(samples[3:10]), samples[10:15]
    assert undisturbed == pytest.approx(TARGET, rel=0.03)
    assert after[0] == pytest.approx(undisturbed, rel=0.1)
    assert mean(after) == pytest.approx(undisturbed, rel=0.05)


@pytest.mark.parametrize("rate", [10.49, 10.51, 10.0])
def test_epochs_keep_their_size_if_all_tell_a_rate_that_is_too_low_or_too_high(monkeypatch, rate):
    """Told are 10 and 11 samples per second: of all rates, these are the furthest off."""
    monkeypatch.setattr("books.RATE", rate)
    samples = epochs(LiveProgressTracker, lambda _peer: None, 20)[3:]
    assert mean(samples) == pytest.approx(TARGET, rel=0.04)
    assert samples == pytest.approx([mean(samples)] * len(samples), rel=0.04)


@pytest.mark.parametrize(("kind", "full"), [(LiveProgressTracker, True), (ProgressTracker, False)])
def test_the_epoch_of_a_death_lacks_the_dead_peer_s_own_samples_only(kind, full):
    lost = []

    def die(peer):
        lost.append(peer.counted)
        peer.die()

    samples = epochs(kind, die, 16)
    undisturbed, of_death = mean(samples[3:10]), samples[10]
    assert (of_death >= undisturbed - lost[0] - 0.03 * TARGET) == full
    if full:
        assert samples[11:] == pytest.approx([undisturbed] * 5, rel=0.05)


def test_stock_ends_an_epoch_before_it_is_full_when_a_peer_pauses():
    samples = epochs(ProgressTracker, pause, 16)
    undisturbed, after = mean(samples[3:10]), samples[10:15]
    assert undisturbed == pytest.approx(TARGET, rel=0.03)
    assert after[0] < 0.9 * undisturbed  # the last reported rate is used until the record expires


def claim(table, name, **false):
    """A record of a peer that takes part in nothing."""
    record = {"peer_id": name, "epoch": 10, "samples_accumulated": 0, "samples_per_second": 0.0, "client_mode": False}
    table.put(name, record | {"time": table.now} | false, 1e6)


FALSE_RECORDS = {
    "samples": {"samples_accumulated": 2**62},
    "samples of a later epoch": {"samples_accumulated": 2**62, "epoch": 12},
    "rate": {"samples_per_second": 1e30, "time": 1e300},
    "endless rate": {"samples_per_second": math.inf},
    "epoch": {"epoch": 10**9},
    "time": {"samples_per_second": 1.0, "time": -1e300},
}


@pytest.mark.parametrize("false", FALSE_RECORDS.values(), ids=FALSE_RECORDS)
def test_a_false_record_changes_the_epochs_of_those_that_average_for_a_few_rounds_at_most(false):
    calm = epochs(LiveProgressTracker, lambda _peer: None, 20)
    harmed = epochs(LiveProgressTracker, lambda peer: claim(peer.table, b"liar", **false), 20)
    assert harmed[15:] == pytest.approx(calm[15:], rel=0.05)
    assert sum(sample < 0.4 * mean(calm) for sample in harmed) <= (false.get("epoch") == 12)


@pytest.mark.parametrize("name", ["samples", "rate", "epoch"])
def test_stock_peers_have_tiny_epochs_as_long_as_it_lasts(name):
    false = FALSE_RECORDS[name] | ({"epoch": 10**6} if name != "epoch" else {})
    harmed = epochs(ProgressTracker, lambda peer: claim(peer.table, b"liar", **false), 14)
    assert max(harmed[11:]) < 0.2 * TARGET


@pytest.fixture
def tracker(monkeypatch):
    """A tracker that counts 100 samples a second."""
    table = Table()
    monkeypatch.setattr("skep.worker.swarm.tracker.time.monotonic", table.clock)
    made = LiveProgressTracker(table, "run", TARGET, start=False)
    made.rate, made._there = lambda: 100.0, all_there
    made.report_local_progress(0, 8)
    made.should_report_progress.clear()
    made.table = table
    return made


def test_another_rate_is_told_at_once_with_what_is_accumulated(tracker):
    tracker.rate = lambda: 20.0
    tracker.tell()
    assert tracker.should_report_progress.is_set()
    told = tracker.local_progress
    assert (told.samples_per_second, told.samples_accumulated) == (20.0, 8)


@pytest.mark.parametrize(
    ("rate", "told"), [(123.456, 120.0), (0.0125678, 0.013), (99.6, 100.0), (1.05e-9, 1.1e-9), (0.0, 0.0)]
)
def test_others_are_told_two_digits_of_the_rate(tracker, rate, told):
    tracker.rate = lambda: rate
    tracker.report_local_progress(0, 16)
    assert tracker.local_progress.samples_per_second == pytest.approx(told, rel=1e-12)
    tracker.should_report_progress.clear()
    tracker.table.now += 10.0
    tracker.tell()
    assert not tracker.should_report_progress.is_set()  # the rate is still near enough to what was told of it


def test_hivemind_s_own_estimate_is_told_so_too(tracker):
    tracker.rate = lambda: None
    tracker.performance_ema.samples_per_second = 123.456
    tracker.stand_at(0)
    assert tracker.local_progress.samples_per_second == 120.0


def test_a_share_that_changes_all_the_time_does_not_flood_the_swarm(tracker):
    told = 0
    for tenth in range(100):
        tracker.table.now += 0.1
        tracker.rate = lambda rate=20.0 + 60.0 * (tenth % 2): rate
        tracker.tell()
        told += tracker.should_report_progress.is_set()
        tracker.should_report_progress.clear()
    assert 5 < told <= 20  # ten seconds


def told_in_ten_seconds(tracker, report):
    """The number of published records, with a step batch every tenth of a second."""
    told = 0
    for tenth in range(1, 101):
        tracker.table.now += 0.1
        report(0, 8 + 4 * tenth)
        told += tracker.should_report_progress.is_set()
        tracker.should_report_progress.clear()
    return told


def test_step_batches_are_counted_at_once_and_told_every_two_seconds_where_stock_tells_of_each(tracker):
    def grow(epoch, samples):
        before = tracker.global_progress.samples_accumulated
        tracker.grow(epoch, samples)
        assert tracker.global_progress.samples_accumulated == before + 4
        tracker.tell()

    assert 5 <= told_in_ten_seconds(tracker, grow) <= 6
    assert tracker.local_progress.samples_accumulated == 408
    assert told_in_ten_seconds(tracker, partial(ProgressTracker.report_local_progress, tracker)) == 100


def test_an_epoch_s_first_samples_are_told_at_once(tracker):
    tracker.grow(0, 12)
    tracker.tell()
    tracker.should_report_progress.clear()
    tracker.grow(0, 16)
    tracker.tell()
    assert not tracker.should_report_progress.is_set()  # samples of the same epoch were published a moment ago
    with tracker.lock_global_progress:
        tracker.update_epoch(1)
    tracker.should_report_progress.clear()
    tracker.grow(1, 4)
    tracker.tell()
    assert tracker.should_report_progress.is_set()
    assert (tracker.local_progress.epoch, tracker.local_progress.samples_accumulated) == (1, 4)


@pytest.mark.parametrize("rate", [95.0, 105.0, None])
def test_what_the_others_know_well_enough_is_not_told_again(tracker, rate):
    tracker.rate = lambda: rate
    tracker.tell()
    assert not tracker.should_report_progress.is_set()


def test_a_peer_that_rests_says_nothing_but_zero(tracker):
    tracker.rest()
    tracker.should_report_progress.clear()
    tracker.rate = lambda: 50.0
    tracker.tell()
    assert not tracker.should_report_progress.is_set()
    assert (tracker.local_progress.samples_per_second, tracker.local_progress.samples_accumulated) == (0.0, 8)


@pytest.mark.parametrize(("step_batch", "silent"), [(8, True), (100, False)])
def test_a_record_of_a_slow_peer_is_awaited_for_longer(tracker, step_batch, silent):
    """8 samples take it 2 s, 100 take it 25 s."""
    tracker.step_batch = step_batch
    told = {"peer_id": b"slow", "samples_per_second": 4.0, "time": get_dht_time() - 20}
    tracker.table.put(b"slow", tracker.local_progress.dict() | told, 30)
    swarm = tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert swarm.samples_accumulated == 8
    assert (swarm.eta_next_epoch == math.inf or swarm.eta_next_epoch > get_dht_time() + 1e6) == silent


def test_others_are_counted_without_us(tracker):
    assert tracker.others == 0
    progress = tracker.local_progress.dict()
    for name in (tracker._local_public_key, b"another", b"third"):
        tracker.table.put(name, progress | {"peer_id": name}, 30)
    tracker.table.put(b"gone", None, 30)
    tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert tracker.others == 2


def test_what_a_process_before_this_one_has_left_is_not_counted(tracker):
    """Its key was another one; its record outlives it by up to 20 s."""
    ours = tracker.local_progress.dict()
    tracker.table.put(tracker._local_public_key, ours, 30)
    tracker.table.put(b"before", ours | {"samples_accumulated": 4}, 30)
    seen = tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert (tracker.others, tracker.at_work) == (0, 0)
    assert (seen.num_peers, seen.samples_accumulated) == (1, 8)


def test_a_record_with_a_long_id_is_left_out_before_its_id_is_written_as_text(tracker, monkeypatch):
    lengths = []

    class Counted(PeerID):
        def to_base58(self):
            lengths.append(len(self.to_bytes()))
            return super().to_base58()

        __str__ = to_base58

    monkeypatch.setattr("skep.worker.swarm.tracker.PeerID", Counted)
    for length in (38, 64, 65, 15_000):
        tracker.table.put(b"%d" % length, tracker.local_progress.dict() | {"peer_id": bytes(length)}, 30)
    tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert tracker.others == 2
    assert max(lengths) == 64


def test_the_epoch_that_all_others_have_reached_is_that_of_those_who_averaged_with_us(tracker):
    assert tracker.others_at_least == 0
    progress = tracker.local_progress.dict()
    for name, epoch in ((tracker._local_public_key, 1), (b"another", 5), (b"third", 6), (b"liar", 10**9)):
        tracker.table.put(name, progress | {"epoch": epoch, "peer_id": name}, 30)
    tracker.table.put(b"gone", None, 30)
    tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert tracker.others_at_least == 0
    tracker.averaged(4, [str(PeerID(b"another")), str(PeerID(b"third"))])
    tracker._parse_swarm_progress_data(tracker.table.get("").value)
    assert tracker.others_at_least == 5


def test_no_record_has_a_later_epoch_than_the_last_one_of_the_run(tracker):
    tracker.last_epoch = 2000
    tracker.table.put(b"liar", tracker.local_progress.dict() | {"epoch": 10**9, "peer_id": b"liar"}, 30)
    assert tracker._parse_swarm_progress_data(tracker.table.get("").value).epoch == 2000


def test_a_peer_that_stands_back_does_not_count_its_own_later_record(tracker):
    later = tracker.local_progress.copy(update={"epoch": 79})
    tracker.table.put(tracker._local_public_key, later.dict(), 60)
    for name, epoch in ((b"ann", 60), (b"bob", 60)):
        record = later.copy(update={"epoch": epoch, "peer_id": name, "time": tracker.table.now}).dict()
        tracker.table.put(name, record, 60)
    tracker.stand_at(79)

    def look():
        tracker.global_progress = tracker._parse_swarm_progress_data(tracker.table.get("run_progress").value)
        return tracker.global_epoch, tracker.usual

    assert look() == (79, 60)
    tracker.stand_back_at(60)
    assert tracker.global_epoch == 60
    assert look() == (60, 60)


def newest(epochs, *answering, last=math.inf):
    """The newest of the offers, of which those of `answering` have answered at the second question only."""
    asked = []

    def there(peers):
        asked.append(set(peers))
        return {peer: float(peer in answering and len(asked) > 2) for peer in peers}

    tracker = SimpleNamespace(_there=there, _attendance=SimpleNamespace(wait=lambda _within: True), last_epoch=last)
    return LiveProgressTracker.newest_of_there(tracker, epochs)


def test_of_the_offers_the_newest_of_those_who_answer_counts():
    offers = {"ann": 5.0, "bob": 9.5, "cleo": 12.0}
    assert newest(offers, "ann", "bob") == 10
    assert newest(offers, "ann", "bob", last=8) == 8
    assert newest(offers) == newest({}) == 0
