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
from skep.core.project.shards import shard_name
from skep.core.session.messages import ShardProgress
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
    wait_for(lambda: not any(thread.is_alive() for thread in shards._threads))
    assert posted.nothing_more()


def test_nothing_starts_before_the_first_request_and_closing_then_is_fine(cache):
    before = threading.active_count()
    shards = HttpShards(cache, cache.parent / "notes", **ROOMY)
    assert threading.active_count() == before
    shards.close()
    assert not cache.exists()
