import hashlib

import pytest

import manifests
from downloads import (
    LENGTH,
    QUICK,
    ROOMY,
    Posted,
    assert_failed,
    make_index,
    make_shard,
)
from fakes import make_project
from skep.adapters.net.shards_http import HttpShards
from skep.core.session.messages import IndexArrived
from web_of_faults import endless, missing, ranged, status, whole


@pytest.fixture
def fetch_index(server, cache):
    def fetch_it(raw, sha256=None, length=LENGTH):
        text = manifests.raw(
            data__index=f"{server.address}/index.json",
            data__sha256=sha256 or hashlib.sha256(raw).hexdigest(),
            recipe__sequence_length=length,
        )
        project = make_project(manifest=text)
        server.scripts.setdefault("index.json", [whole(raw)])
        shards, posted = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK), Posted()
        shards.fetch_index(project, posted)
        answer = posted.answer()
        shards.close()
        return answer

    return fetch_it


def test_the_index_is_fetched_and_verified(fetch_index):
    shard = make_shard()[1]
    answer = fetch_index(make_index(shard))
    assert isinstance(answer, IndexArrived)
    assert answer.index.shards == (shard,)


@pytest.mark.way_in
def test_an_index_with_another_hash_is_refused(fetch_index):
    assert_failed(fetch_index(make_index(make_shard()[1]), sha256="0" * 64), "does not match its hash")


def test_an_index_for_another_recipe_is_refused(fetch_index):
    assert_failed(fetch_index(make_index(make_shard()[1]), length=64), "sequence_length must be 64")


def test_an_index_without_end_is_cut_off(fetch_index, server):
    server.scripts["index.json"] = [endless]
    assert_failed(fetch_index(b""), "larger than 2048 KiB")


def test_an_index_is_tried_again_after_an_error(fetch_index, server):
    raw = make_index(make_shard()[1])
    server.scripts["index.json"] = [status(502), ranged(raw, send_at_most=10), whole(raw)]
    assert isinstance(fetch_index(raw), IndexArrived)


def test_an_index_that_cannot_be_had_is_said(fetch_index, server):
    server.scripts["index.json"] = [missing]
    assert_failed(fetch_index(b""), "does not have the project's shard index")
