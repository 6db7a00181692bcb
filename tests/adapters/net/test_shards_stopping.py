import contextlib
import queue
import threading
import time

import pytest

from downloads import (
    DEADLINE,
    ROOMY,
    SIZE,
    Posted,
    assert_arrived,
    fetch,
    make_shard,
    wait_for,
)
from skep.adapters.net.shards_http import HttpShards
from skep.adapters.net.web import Patience
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef
from skep.core.project.shards import shard_name
from skep.core.session.messages import ShardArrived, ShardProgress
from web_of_faults import endless, half_then_silent, ranged, silent, status


@pytest.mark.alone
@pytest.mark.parametrize("act", [silent, half_then_silent(make_shard()[0]), endless, status(500)])
def test_close_stops_within_a_second_whatever_the_server_does(make_shards, server, act):
    _, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [act]
    shards, posted = make_shards(patience=Patience()), Posted()
    shards.fetch(shard, Reach.ANY, posted)
    wait_for(lambda: server.asked)
    begun = time.monotonic()
    shards.close()
    assert time.monotonic() - begun < 1


def test_close_keeps_the_part_file_and_posts_nothing_more(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [half_then_silent(raw), ranged(raw)]
    shards, posted = make_shards(patience=Patience()), Posted()
    shards.fetch(shard, Reach.ANY, posted)
    part = cache / (shard_name(shard.sha256) + ".part")
    wait_for(lambda: part.exists() and part.stat().st_size == SIZE // 2)
    shards.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("shards-")]
    with contextlib.suppress(queue.Empty):
        while isinstance(posted._queue.get_nowait(), ShardProgress):
            pass
    assert posted.nothing_more()
    assert part.read_bytes() == raw[: SIZE // 2]
    server.asked.clear()
    assert_arrived(fetch(make_shards(), shard), cache, raw, shard)
    assert server.asked == [(shard_name(shard.sha256), f"bytes={SIZE // 2}-")]


def test_an_answer_that_comes_after_close_is_not_posted(make_shards, server):
    shard = make_shard()[1]

    def late(handler):
        server.released.wait(DEADLINE)
        handler.head(302, Location="ftp://127.0.0.1/", Content_Length=0)

    server.scripts[shard_name(shard.sha256)] = [late]
    shards, posted = make_shards(patience=Patience()), Posted()
    shards.fetch(shard, Reach.ANY, posted)
    wait_for(lambda: server.asked)
    shards.close()
    server.released.set()
    wait_for(lambda: not any(thread.is_alive() for thread in shards._downloads._threads))
    assert posted.nothing_more()


def test_nothing_starts_before_the_first_request_and_closing_then_is_fine(cache):
    before = threading.active_count()
    shards = HttpShards(cache, cache.parent / "notes", **ROOMY)
    assert threading.active_count() == before
    shards.close()
    assert not cache.exists()


# --- a stop, after which other downloads begin


@pytest.mark.alone
@pytest.mark.parametrize("act", [silent, half_then_silent(make_shard()[0])])
def test_a_stop_ends_the_connections_and_what_is_asked_for_then_does_not_wait(make_shards, server, cache, act):
    shards, posted = make_shards(patience=Patience()), Posted()
    for seed in range(3):
        server.scripts[shard_name(make_shard(seed)[1].sha256)] = [act]
        shards.fetch(make_shard(seed)[1], Reach.ANY, posted)
    wait_for(lambda: len(server.asked) == 2)
    raw, wanted = make_shard(3)
    server.scripts[shard_name(wanted.sha256)] = [ranged(raw)]
    begun, ended = time.monotonic(), shards._downloads
    shards.stop()
    assert_arrived_beside(fetch(shards, wanted), cache, raw, wanted)
    assert time.monotonic() - begun < 1
    assert len(server.asked) == 3  # the third of before was not begun
    wait_for(lambda: not any(thread.is_alive() for thread in ended._threads))
    while not posted.nothing_more():
        assert isinstance(posted._queue.get_nowait(), ShardProgress)


def assert_arrived_beside(answer, cache, raw, shard):
    """Beside parts of others."""
    assert answer == ShardArrived(shard.sha256, str(cache / shard_name(shard.sha256)))
    assert (cache / shard_name(shard.sha256)).read_bytes() == raw


def test_what_was_stopped_goes_on_where_it_ended_when_it_is_asked_for_again(make_shards, server, cache):
    raw, shard = make_shard()
    server.scripts[shard_name(shard.sha256)] = [half_then_silent(raw), ranged(raw)]
    shards = make_shards(patience=Patience())
    shards.fetch(shard, Reach.ANY, Posted())
    part = cache / (shard_name(shard.sha256) + ".part")
    wait_for(lambda: part.exists() and part.stat().st_size == SIZE // 2)
    shards.stop()
    assert_arrived(fetch(shards, shard), cache, raw, shard)
    assert server.asked[-1] == (shard_name(shard.sha256), f"bytes={SIZE // 2}-")


def test_the_end_of_one_that_was_stopped_does_not_disturb_its_successor(make_shards, server, cache):
    raw, shard = make_shard()
    begun, going = threading.Event(), threading.Event()

    def late(handler):
        begun.set()
        going.wait(DEADLINE)
        handler.head(302, Location="ftp://127.0.0.1/", Content_Length=0)

    def slow(handler):
        before = set(first._threads)
        going.set()
        wait_for(lambda: not any(thread.is_alive() for thread in before))
        ranged(raw)(handler)

    server.scripts[shard_name(shard.sha256)] = [late, slow]
    shards = make_shards(patience=Patience())
    shards.fetch(shard, Reach.ANY, Posted())
    assert begun.wait(DEADLINE)
    first = shards._downloads
    shards.stop()
    assert_arrived(fetch(shards, shard), cache, raw, shard)


def test_after_a_stop_the_files_of_a_project_may_make_room_for_another_ones(make_shards, server, cache):
    shards = make_shards(limit_bytes=lambda: 2 * SIZE - 1)
    for seed in range(2):
        raw, shard = make_shard(seed)
        server.scripts[f"file-{seed}"] = [ranged(raw)]
        file = FileRef("weights.safetensors", shard.sha256, SIZE, f"{server.address}/file-{seed}")
        assert isinstance(fetch(shards, file), ShardArrived)
        shards.stop()
    assert [path.name for path in cache.iterdir()] == [shard_name(shard.sha256)]
