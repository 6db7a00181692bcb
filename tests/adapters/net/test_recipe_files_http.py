"""Base weights and tokenizers: downloaded like shards, from their own addresses, and cached for later starts."""

import hashlib

import pytest

import manifests
from downloads import LENGTH, QUICK, ROOMY, Posted, assert_arrived, assert_failed, fetch, make_index, make_shard
from fakes import make_project
from skep.adapters.net import shards_http
from skep.adapters.net.shards_http import HttpShards
from skep.core.project.data import FileRef
from skep.core.project.shards import shard_name
from skep.core.session.messages import IndexArrived, ShardArrived
from web_of_faults import endless, missing, ranged, whole


@pytest.fixture
def weights(server):
    raw, shard = make_shard(5)
    server.scripts["base.safetensors"] = [ranged(raw)]
    return raw, FileRef("base weights", shard.sha256, shard.bytes, f"{server.address}/base.safetensors")


@pytest.fixture
def tokenizer(server):
    raw = b'{"model": {}}' * 100
    server.scripts["tokenizer.json"] = [whole(raw)]
    return raw, FileRef("tokenizer", hashlib.sha256(raw).hexdigest(), 0, f"{server.address}/tokenizer.json")


@pytest.fixture
def plain(cache):
    """A source without an index, which files do not need."""
    made = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["weights", "tokenizer"])
def test_a_file_is_fetched_once_and_kept_under_its_hash(plain, server, cache, kind, request):
    raw, file = request.getfixturevalue(kind)
    assert_arrived(fetch(plain, file), cache, raw, file)
    assert_arrived(fetch(plain, file), cache, raw, file)
    assert len(server.asked) == 1
    assert [path.name for path in cache.iterdir()] == [shard_name(file.sha256)]


@pytest.mark.way_in
@pytest.mark.parametrize("kind", ["weights", "tokenizer"])
def test_a_file_with_another_hash_is_thrown_away_and_said(plain, server, cache, kind, request):
    _, file = request.getfixturevalue(kind)
    wrong = b"x" * (file.bytes or 50)
    server.scripts[file.address.rpartition("/")[2]] = [whole(wrong)]
    assert_failed(fetch(plain, file), f"The project's {file.name} does not match its hash and was deleted.")
    assert not cache.exists() or not list(cache.iterdir())


def test_base_weights_that_break_off_are_gone_on_with(plain, server, cache, weights):
    raw, file = weights
    server.scripts["base.safetensors"] = [ranged(raw, send_at_most=100_000), ranged(raw)]
    assert_arrived(fetch(plain, file), cache, raw, file)
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-"]


@pytest.mark.parametrize("kind", ["weights", "tokenizer"])
def test_a_damaged_kept_file_is_fetched_again(plain, server, cache, kind, request):
    raw, file = request.getfixturevalue(kind)
    cache.mkdir(parents=True)
    (cache / shard_name(file.sha256)).write_bytes(b"x" * len(raw))
    assert_arrived(fetch(plain, file), cache, raw, file)


@pytest.mark.parametrize("kind", ["weights", "tokenizer"])
def test_a_missing_file_is_said(plain, server, kind, request):
    _, file = request.getfixturevalue(kind)
    server.scripts[file.address.rpartition("/")[2]] = [missing]
    assert_failed(fetch(plain, file), f"project's {file.name}")


@pytest.mark.parametrize("kind", ["weights", "tokenizer"])
def test_no_file_takes_more_room_than_it_may(server, cache, kind, request):
    _, file = request.getfixturevalue(kind)
    tight = HttpShards(
        cache, cache.parent / "notes", limit_bytes=lambda: 1000, keep_free_bytes=lambda: 0, patience=QUICK
    )
    full = HttpShards(
        cache,
        cache.parent / "notes",
        **ROOMY | {"keep_free_bytes": lambda: 10**9},
        free_space=lambda _: 10**9,
        patience=QUICK,
    )
    try:
        assert_failed(fetch(tight, file), "more than the cache limit")
        assert_failed(fetch(full, file), "The disk has")
    finally:
        tight.close()
        full.close()


def test_a_tokenizer_without_end_is_cut_off(plain, server, tokenizer, monkeypatch):
    monkeypatch.setattr(shards_http, "UNSIZED_LIMIT", 1024 * 1024)
    server.scripts["tokenizer.json"] = [endless]
    assert_failed(fetch(plain, tokenizer[1]), "The project's tokenizer is larger than 1024 KiB.")


def test_base_weights_are_not_thrown_out_for_shards(make_shards, server, cache, weights):
    raw, file = weights
    shards = make_shards(limit_bytes=lambda: 5 * len(raw))
    assert_arrived(fetch(shards, file), cache, raw, file)
    for seed in range(10, 20):
        content, shard = make_shard(seed)
        server.scripts[shard_name(shard.sha256)] = [whole(content)]
        assert isinstance(fetch(shards, shard), ShardArrived)
    assert (cache / shard_name(file.sha256)).exists()


def test_the_index_comes_with_the_files_of_the_recipe(plain, server):
    index = make_index(make_shard()[1])
    server.scripts["index.json"] = [whole(index)]
    text = manifests.raw(
        data__index=f"{server.address}/index.json",
        data__sha256=hashlib.sha256(index).hexdigest(),
        recipe=manifests.lora() | {"sequence_length": LENGTH},
    )
    posted = Posted()
    plain.fetch_index(make_project(manifest=text), posted)
    answer = posted.answer()
    assert isinstance(answer, IndexArrived)
    assert [file.name for file in answer.index.files] == ["base weights"]
