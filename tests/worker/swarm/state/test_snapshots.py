"""A peer's own copy of the state: far enough apart, in a thread of its own, and on leaving."""

import os
import shutil
import threading
import time

import pytest
import torch

from english import in_english
from manifests import raw
from skep.worker.swarm.state.snapshots import DAY, FORGET_DAYS, LEAST_SECONDS, SAVED_AGAIN, Snapshots
from small_disks import small_disk

NAMES = ["weight", "bias"]
WITHIN = 30.0


def state(epoch):
    return epoch, [torch.full((250_000,), float(epoch)), torch.ones(3), torch.tensor(float(epoch)), torch.ones(3)]


class Source:
    """A state whose epoch the test sets; counts how often it was copied, and in which thread."""

    def __init__(self):
        self.epoch, self.threads, self.blocked = 1, [], threading.Event()
        self.blocked.set()

    def take(self):
        self.threads.append(threading.current_thread())
        assert self.blocked.wait(WITHIN)
        return state(self.epoch)


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def made(tmp_path):
    clock, told = [time.time()], []

    def make(bytes_per_day=10**12):
        return Snapshots(
            tmp_path, "run-1", raw().decode(), NAMES, bytes_per_day, clock=lambda: clock[0], tell=told.append
        )

    make.clock, make.told = clock, told
    return make


def written(snapshots):
    if snapshots._writing:
        snapshots._writing.join(WITHIN)
    return [path.name for path in snapshots._kept.paths()]


def test_what_was_saved_is_found_after_a_restart(made, source):
    made().finish(source.take, WITHIN)
    again = made()
    found = again.newest()
    assert found.epoch == 1
    assert all(map(torch.equal, again.tensors(found), state(1)[1]))
    assert source.threads[0] is not threading.current_thread()


def test_what_is_superseded_stays_until_another_state_is_saved_at_any_epoch(made, source):
    kept = made()
    kept.finish(lambda: state(9), WITHIN)
    kept.supersede()
    assert made().newest().epoch == 9
    kept.finish(lambda: state(4), WITHIN)
    assert made().newest().epoch == 4
    kept.finish(lambda: state(3), WITHIN)
    assert made().newest().epoch == 4


def test_the_next_one_waits_as_long_as_its_size_and_the_days_limit_say(made, source):
    snapshots = made(bytes_per_day=100 * 10**6)  # of 1 MB each: every 864 s
    snapshots.consider(source.take)
    assert written(snapshots) == ["epoch-00000001.safetensors"]
    source.epoch = 2
    made.clock[0] += 800
    snapshots.consider(source.take)
    assert written(snapshots) == ["epoch-00000001.safetensors"]
    made.clock[0] += 100
    again = made(bytes_per_day=100 * 10**6)  # after a restart too
    again.consider(source.take)
    assert written(again) == ["epoch-00000002.safetensors"]


def test_a_small_one_is_written_every_few_minutes_at_most(made, source):
    snapshots = made()
    snapshots.consider(source.take)
    written(snapshots)
    source.epoch = 2
    made.clock[0] += LEAST_SECONDS - 10
    snapshots.consider(source.take)
    assert written(snapshots) == ["epoch-00000001.safetensors"]
    made.clock[0] += 20
    snapshots.consider(source.take)
    assert written(snapshots) == ["epoch-00000002.safetensors"]


def test_leaving_waits_no_longer_than_it_may(made, source):
    source.blocked.clear()
    begun = time.monotonic()
    snapshots = made()
    snapshots.finish(source.take, 0.2)
    assert time.monotonic() - begun < WITHIN
    source.blocked.set()
    assert written(snapshots) == ["epoch-00000001.safetensors"]


def test_leaving_saves_though_none_is_due(made, source):
    snapshots = made(bytes_per_day=1)
    snapshots.consider(source.take)
    written(snapshots)
    source.epoch = 2
    snapshots.finish(source.take, WITHIN)
    assert written(snapshots) == ["epoch-00000002.safetensors"]


def test_a_damaged_one_or_another_models_is_not_used(made, source):
    snapshots = made()
    snapshots.finish(source.take, WITHIN)
    snapshots.names = ["weight", "other"]
    assert snapshots.newest() is None
    path = snapshots._kept.paths()[0]
    path.write_bytes(path.read_bytes()[:100])
    assert made().newest() is None


@pytest.mark.parametrize("wrong", ["damaged", "of another model"])
def test_one_that_cannot_be_used_is_replaced_at_any_epoch_and_no_sooner_than_another_would(made, source, wrong):
    earlier = made()
    earlier.finish(lambda: state(1000), WITHIN)
    path = earlier._kept.paths()[0]
    if wrong == "damaged":
        path.write_bytes(path.read_bytes()[:100])
    else:
        earlier.names = ["weight", "other"]
        earlier.supersede()
        earlier.finish(lambda: state(1000), WITHIN)
    os.utime(path, (made.clock[0] - 3600.0,) * 2)
    snapshots = made()
    assert snapshots.newest() is None
    source.epoch = 990
    snapshots.consider(source.take)
    assert written(snapshots) == ["epoch-00000990.safetensors"]
    source.epoch = 991
    made.clock[0] += 60.0
    snapshots.consider(source.take)  # at the next epoch, a minute later
    assert written(snapshots) == ["epoch-00000990.safetensors"]
    assert made().newest().epoch == 990


def test_an_earlier_one_is_used_where_the_newest_is_damaged(made):
    snapshots = made()
    snapshots.finish(lambda: state(4), WITHIN)
    [path] = snapshots._kept.paths()
    # as after a crash between writing one and removing the one before it
    path.with_name("epoch-00000005.safetensors").write_bytes(b"cut off")
    assert made().newest().epoch == 4


def test_a_disk_that_cannot_be_written_ends_nothing_and_is_said(made, source, tmp_path):
    (tmp_path / "run-1").write_text("in the way")
    snapshots = made()
    snapshots.consider(source.take)
    snapshots.finish(source.take, WITHIN)
    assert snapshots.newest() is None
    assert "cannot be read or written" in in_english(made.told[0].problem.title)


def test_a_full_disk_is_not_filled_again_at_every_epoch(made, source, tmp_path):
    with small_disk(tmp_path, 512):
        snapshots = made()
        for _ in range(3):
            snapshots.consider(source.take)
            snapshots._writing.join(WITHIN)
        (noticed,) = made.told
        assert in_english(noticed.problem.title).endswith(": No space left on device.")
        assert shutil.disk_usage(tmp_path).used < 64 * 1024
        made.clock[0] += LEAST_SECONDS
        snapshots.consider(source.take)
        attempted = snapshots._writing
        attempted.join(WITHIN)
        assert snapshots._refused == made.clock[0]
        assert made.told == [noticed]  # said once


def test_what_a_full_disk_took_counts_for_the_bytes_of_a_day(made, source, tmp_path):
    size = sum(each.nbytes for each in source.take()[1])
    with small_disk(tmp_path, 512):
        snapshots = made(bytes_per_day=24 * size)
        snapshots.consider(source.take)
        snapshots._writing.join(WITHIN)
        refused = made.clock[0]
        for later, tried in ((3599.0, refused), (3600.0, refused + 3600.0)):
            made.clock[0] = refused + later
            snapshots.consider(source.take)
            snapshots._writing.join(WITHIN)
            assert snapshots._refused == tried


def test_once_there_is_room_again_the_problem_is_over(made, source, tmp_path):
    with small_disk(tmp_path, 512):
        snapshots = made()
        snapshots.consider(source.take)
        snapshots._writing.join(WITHIN)
    for _ in range(2):
        made.clock[0] += 10 * LEAST_SECONDS
        snapshots.consider(source.take)
        snapshots._writing.join(WITHIN)
        source.epoch += 1
    (refused, over) = made.told
    assert (over.problem, over.over) == (SAVED_AGAIN, refused.problem)


def test_old_ones_of_other_runs_are_removed(made, source, tmp_path):
    for name, days in (("old", FORGET_DAYS + 1), ("young", 1)):
        other = Snapshots(tmp_path, name, raw().decode(), NAMES, 10**12)
        other.finish(source.take, WITHIN)
        at = time.time() - days * DAY
        os.utime(other._kept.paths()[0], (at, at))
    made().newest()
    assert {path.name for path in tmp_path.iterdir()} == {"young"}
