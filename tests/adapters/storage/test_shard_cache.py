import os
import subprocess
from pathlib import Path

import pytest

from damages import DAMAGES, as_a_user, folder_in_its_place, unreadable
from downloads import SIZE, Posted, assert_arrived, assert_failed, fetch, make_shard
from english import in_english
from skep.adapters.net.web import Patience
from skep.adapters.storage.shard_cache import KEPT_FOR_THE_WORKER, disk_errors
from skep.core.errors import StorageError
from skep.core.project.addresses import Reach
from skep.core.project.shards import shard_name
from skep.core.session.messages import ShardArrived
from web_of_faults import half_then_silent, ranged


def test_a_disk_without_enough_room_is_said_before_the_download(make_shards, server):
    _, shard = make_shard()
    shards = make_shards(keep_free_bytes=lambda: 10**9, free_space=lambda _: 10**9 + SIZE - 1)
    assert_failed(fetch(shards, shard), "1.0\u2009GB free", "300.0\u2009kB of training data does not fit")
    assert not server.asked


def test_just_enough_room_is_enough(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    shards = make_shards(keep_free_bytes=lambda: 10**9, free_space=lambda _: 10**9 + SIZE)
    assert_arrived(fetch(shards, shard), cache, raw, shard)


def test_a_full_disk_is_said_and_what_came_is_kept(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    cache.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", cache]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        assert_failed(fetch(make_shards(free_space=lambda _: 10**9), shard), "The disk is full", str(cache))
        part = (cache / (shard_name(shard.sha256) + ".part")).read_bytes()
        assert 0 < len(part) <= 100 * 1024
        assert raw.startswith(part)
    finally:
        subprocess.run(["umount", cache], check=True)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("unfinished", ["", ".part"])
def test_a_damaged_shard_is_fetched_again(make_shards, server, cache, damage, unfinished):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw), ranged(raw)]
    cache.mkdir(parents=True)
    file = cache / (shard_name(shard.sha256) + unfinished)
    file.write_bytes(raw)
    damage(file)
    with as_a_user():
        answer = fetch(make_shards(), shard)
    if damage is folder_in_its_place or (unfinished and damage is unreadable):
        assert_failed(answer, "Training data cannot be stored in", str(cache))
    else:
        assert_arrived(answer, cache, raw, shard)


def test_a_disk_full_error_becomes_words():
    with (
        pytest.raises(StorageError) as caught,
        Path("/dev/full").open("wb", buffering=0) as full,
        disk_errors(Path("/x")),
    ):
        full.write(b"x")
    assert in_english(caught.value.title) == "The disk is full: training data cannot be stored in /x."


def test_a_folder_that_cannot_be_made_is_said(make_shards, server, cache):
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file in the way")
    assert_failed(fetch(make_shards(), make_shard()[1]), "cannot be stored", str(cache))


@pytest.fixture
def four(server):
    made = [make_shard(number, 1000) for number in range(6)]
    for raw, shard in made:
        server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    return [shard for _, shard in made]


def test_the_least_recently_used_shard_makes_room(make_shards, four, cache):
    shards = make_shards(limit_bytes=lambda: 5000)
    for number, shard in enumerate(four[:5]):
        fetch(shards, shard)
        os.utime(cache / shard_name(shard.sha256), (number, number))
    other = cache / "notes.txt"
    other.write_bytes(bytes(9000))
    for used_again in (0, 2, 3, 4):
        fetch(shards, four[used_again])
    assert isinstance(fetch(shards, four[5]), ShardArrived)
    gone = {shard.sha256 for shard in four if not (cache / shard_name(shard.sha256)).exists()}
    assert gone == {four[1].sha256}
    assert other.exists()


def test_shards_just_handed_out_stay_and_a_limit_too_small_for_them_is_said(make_shards, four, cache):
    shards = make_shards(limit_bytes=lambda: 3500)
    for number, shard in enumerate(four[:KEPT_FOR_THE_WORKER]):
        fetch(shards, shard)
        os.utime(cache / shard_name(shard.sha256), (number, number))
    assert_failed(fetch(shards, four[3]), "more than the cache limit")
    assert len(list(cache.iterdir())) == 3


def test_a_limit_smaller_than_one_shard_is_said(make_shards, server):
    shards = make_shards(limit_bytes=lambda: SIZE - 1)
    assert_failed(fetch(shards, make_shard()[1]), "300.0\u2009kB, more than the cache limit")
    assert not server.asked


def test_limits_changed_while_skep_runs_count_for_the_next_download(make_shards, server):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    limits = {"most": SIZE - 1, "free": 0}
    shards = make_shards(
        limit_bytes=lambda: limits["most"], keep_free_bytes=lambda: limits["free"], free_space=lambda _: 10**9
    )
    assert_failed(fetch(shards, shard), "more than the cache limit")
    limits.update(most=SIZE, free=10**9)
    assert_failed(fetch(shards, shard), "must stay free")
    limits.update(free=0)
    assert isinstance(fetch(shards, shard), ShardArrived)


def test_nothing_is_evicted_when_that_would_not_help(make_shards, four, cache):
    fetch(make_shards(), four[0])
    shards = make_shards(keep_free_bytes=lambda: 10**9, free_space=lambda _: 10**6)
    assert_failed(fetch(shards, four[1]), "does not fit")
    assert (cache / shard_name(four[0].sha256)).exists()


def test_a_stale_part_file_makes_room_too(make_shards, four, cache):
    cache.mkdir(parents=True)
    stale = cache / (shard_name("e" * 64) + ".part")
    stale.write_bytes(bytes(4000))
    assert isinstance(fetch(make_shards(limit_bytes=lambda: 4000), four[0]), ShardArrived)
    assert not stale.exists()


def test_downloads_under_way_count_for_the_limit(make_shards, server):
    (raw, shard), (_, other) = make_shard(1), make_shard(2)
    server.scripts[shard_name(shard.sha256)] = [half_then_silent(raw)]
    shards, posted = make_shards(limit_bytes=lambda: 2 * SIZE - 1, patience=Patience()), Posted()
    shards.fetch(shard, Reach.ANY, posted)
    posted.first_progress()
    assert_failed(fetch(shards, other), "more than the cache limit")
