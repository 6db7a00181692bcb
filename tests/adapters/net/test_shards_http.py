import hashlib
import socket
import time

import pytest
from urllib3.util import Retry

from downloads import (
    QUICK,
    ROOMY,
    SIZE,
    Posted,
    assert_arrived,
    assert_failed,
    fetch,
    make_shard,
)
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.net.web import Patience
from skep.core.project.addresses import Reach
from skep.core.project.shards import shard_name
from skep.core.session.messages import ShardArrived, ShardFailed
from web_of_faults import endless, half_then_silent, missing, ranged, silent, status, trickle, whole

# --- without faults


def test_a_shard_is_downloaded_verified_and_kept_under_its_hash(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert [path.name for path in cache.iterdir()] == [shard_name(shard.sha256)]
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_kept_shard_is_not_downloaded_again_even_by_another_process(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    first = make_shards()
    fetch(first, shard)
    fetch(first, shard)
    assert len(server.asked) == 1
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert not server.asked


def test_a_damaged_kept_shard_is_fetched_again(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    fetch(make_shards(), shard)
    for damaged in (raw[:-1] + bytes([raw[-1] ^ 1]), raw[:-1]):
        (cache / shard_name(shard.sha256)).write_bytes(damaged)
        assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
        assert len(server.asked) == 1


def test_a_kept_shard_is_hashed_at_its_first_use_only(make_shards, server, monkeypatch):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    fetch(make_shards(), shard)
    hashed, really = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: hashed.append(file.name) or really(file, kind))
    again = make_shards()
    fetch(again, shard)
    fetch(again, shard)
    assert len(hashed) == 1


def test_progress_is_said_a_few_times_a_second_and_grows(make_shards, server):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [trickle(raw, pieces=100, seconds=0.01)]
    posted = Posted()
    begun = time.monotonic()
    make_shards().fetch(shard, Reach.ANY, posted)
    assert isinstance(posted.answer(), ShardArrived)
    said = [message.bytes for message in posted.progress]
    assert 2 <= len(said) <= 2 + (time.monotonic() - begun) / 0.2
    assert said == sorted(said)
    assert {message.total for message in posted.progress} == {SIZE}


def test_two_requests_for_one_shard_share_one_download(make_shards, server):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [trickle(raw, pieces=10, seconds=0.02)]
    shards, one, two = make_shards(), Posted(), Posted()
    shards.fetch(shard, Reach.ANY, one)
    shards.fetch(shard, Reach.ANY, two)
    assert isinstance(one.answer(), ShardArrived)
    assert isinstance(two.answer(), ShardArrived)
    assert len(server.asked) == 1


def test_two_shards_are_downloaded_at_the_same_time(make_shards, server):
    (raw, shard), (other_raw, other) = make_shard(1), make_shard(2)
    server.scripts[shard_name(shard.sha256)] = [half_then_silent(raw)]
    server.scripts[shard_name(other.sha256)] = [whole(other_raw)]
    shards, posted = make_shards(patience=Patience(read_seconds=30)), Posted()
    shards.fetch(shard, Reach.ANY, posted)
    posted.first_progress()
    assert isinstance(fetch(shards, other), ShardArrived)


# --- resumed downloads


def test_a_download_that_breaks_off_goes_on_by_range(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw, send_at_most=100_000), ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-"]


def test_a_part_file_of_an_earlier_run_is_gone_on_with(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    cache.mkdir(parents=True)
    (cache / (shard_name(shard.sha256) + ".part")).write_bytes(raw[:1234])
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert [asked for _, asked in server.asked] == ["bytes=1234-"]


def test_a_whole_part_file_needs_no_download(make_shards, server, cache):
    raw, shard = make_shard()
    cache.mkdir(parents=True)
    (cache / (shard_name(shard.sha256) + ".part")).write_bytes(raw)
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert not server.asked


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * SIZE, b"x" * (SIZE + 1)])
def test_a_wrong_part_file_is_thrown_away_and_the_download_begun_anew(make_shards, server, cache, left):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
    cache.mkdir(parents=True)
    (cache / (shard_name(shard.sha256) + ".part")).write_bytes(left)
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)


def test_a_server_that_ignores_range_is_read_from_the_beginning(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw, send_at_most=100_000), whole(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert len(server.asked) == 2


@pytest.mark.parametrize("refusal", [status(416), status(206, Content_Range="bytes 0-9/10"), status(206)])
def test_a_server_that_cannot_go_on_is_asked_from_the_beginning(make_shards, server, cache, refusal):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw, send_at_most=100_000), refusal, ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-", None]


# --- servers that fail


def test_a_truncating_server_is_tried_a_few_times_and_what_came_is_kept(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw, send_at_most=1000)]
    assert_failed(fetch(make_shards(), shard), "127.0.0.1", "was interrupted")
    assert len(server.asked) == QUICK.retry.total + 1
    assert (cache / (shard_name(shard.sha256) + ".part")).read_bytes() == raw[:3000]


@pytest.mark.way_in
def test_wrong_bytes_are_thrown_away_and_said(make_shards, server, cache):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [whole(bytes(SIZE))]
    assert_failed(fetch(make_shards(), shard), shard.sha256[:12], "does not match its hash and was deleted")
    assert len(server.asked) == 1
    assert not list(cache.iterdir())


@pytest.mark.way_in
@pytest.mark.parametrize("size", [0, 10, SIZE - 1, SIZE + 1])
def test_another_size_than_promised_is_refused_before_reading(make_shards, server, cache, size):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [whole(bytes(size))]
    assert_failed(fetch(make_shards(), shard), f"does not have the expected {SIZE} bytes")
    assert not list(cache.iterdir())


@pytest.mark.way_in
def test_an_endless_body_is_cut_off_at_the_announced_size(make_shards, server, cache):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [endless]
    assert_failed(fetch(make_shards(), shard), f"does not have the expected {SIZE} bytes")
    assert not list(cache.iterdir())


def test_a_missing_shard_is_said_at_once(make_shards, server, cache):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [missing]
    assert_failed(fetch(make_shards(), shard), "127.0.0.1", "does not have the shard", "404")
    assert len(server.asked) == 1
    assert not list(cache.iterdir())


def test_a_server_error_is_tried_again(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [status(500), status(429), ranged(raw)]
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)


def test_a_server_error_that_stays_is_said(make_shards, server):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [status(503)]
    assert_failed(fetch(make_shards(), shard), "reports an error of its own", "503")
    assert len(server.asked) == QUICK.retry.total + 1


def test_a_server_that_is_down_is_said(make_shards, server):
    _, shard = make_shard()
    shards = make_shards()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound but not listening
        shards._downloads.index_address = f"http://127.0.0.1:{probe.getsockname()[1]}/index.json"
        assert_failed(fetch(shards, shard), "cannot be reached")


@pytest.mark.parametrize(("act", "asked"), [(silent, 1), (half_then_silent(make_shard()[0]), 2)])
def test_a_server_that_falls_silent_is_given_up(make_shards, server, act, asked):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [act]
    shards = make_shards(patience=Patience(read_seconds=2, retry=Retry(1)))
    assert isinstance(fetch(shards, shard), ShardFailed)
    assert len(server.asked) == asked  # a server that sends no answer is not asked again immediately


def test_a_server_that_only_trickles_is_given_up(make_shards, server):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [trickle(raw, pieces=SIZE, seconds=0.05)]
    shards = make_shards(patience=Patience(read_seconds=2, retry=Retry(0)))
    assert_failed(fetch(shards, shard), "sends too slowly")


def test_a_shard_asked_for_before_the_index_is_refused_in_words(cache):
    shards = HttpShards(cache, cache.parent / "notes", **ROOMY)
    assert_failed(fetch(shards, make_shard()[1]), "before the project's shard index")
    shards.close()


def test_an_unforeseen_error_still_gives_an_answer_and_the_thread_lives_on(make_shards, server, caplog):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [ranged(raw)]

    def broken(folder):
        raise KeyError(folder)

    shards = make_shards(free_space=broken)
    for _ in range(3):
        assert_failed(fetch(shards, shard), "could not be downloaded")
    assert "KeyError" in caplog.text
