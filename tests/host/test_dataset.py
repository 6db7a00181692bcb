import hashlib
import random
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from english import raises
from skep.core.errors import BadInput, DataError, StorageError
from skep.core.project.data import TextLayout
from skep.core.project.shards import parse_index, shard_name
from skep.host.shards.dataset import build_shards, library_sources

SIZES = {"sequence_length": 16, "samples_per_shard": 20, "max_shards": 3, "held_out_samples": 12}


@pytest.fixture
def sources(tmp_path):
    """200 files; every byte of a file is its number."""
    folder = tmp_path / "sources"
    folder.mkdir()
    lengths = random.Random(1)
    made = []
    for number in range(200):
        path = folder / f"{number:03}.py"
        path.write_bytes(bytes([number]) * lengths.randrange(10, 200))
        made.append(path)
    return made


def tokens(folder, shards):
    return np.concatenate([load_file(folder / shard_name(shard.sha256))["tokens"] for shard in shards])


def test_the_shards_are_what_the_index_says(sources, tmp_path):
    folder = tmp_path / "served"
    path, sha256, index = build_shards(sources, folder, **SIZES)
    raw = path.read_bytes()
    assert hashlib.sha256(raw).hexdigest() == sha256
    assert parse_index(raw, TextLayout(16, 256)) == index
    assert [shard.samples for shard in index.shards] == [20, 20, 20]
    assert [shard.samples for shard in index.held_out] == [12]
    for shard in index.shards + index.held_out:
        content = (folder / shard_name(shard.sha256)).read_bytes()
        assert len(content) == shard.bytes
        assert hashlib.sha256(content).hexdigest() == shard.sha256
    assert tokens(folder, index.shards).shape == (60, 16)
    assert tokens(folder, index.shards).dtype == np.uint8
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["index.json"] + [shard_name(shard.sha256) for shard in index.shards + index.held_out]
    )


def test_the_same_files_give_the_same_index(sources, tmp_path):
    one, two = (build_shards(sources, tmp_path / name, **SIZES) for name in ("one", "two"))
    assert one[1:] == two[1:]


def test_held_out_files_are_in_no_training_shard_and_many_of_them_are_used(sources, tmp_path):
    _, _, index = build_shards(sources, tmp_path, **SIZES | {"max_shards": 1000})
    trained = set(tokens(tmp_path, index.shards).flatten().tolist())
    held_out = set(tokens(tmp_path, index.held_out).flatten().tolist())
    assert not trained & held_out
    assert len(trained) > 150
    assert len(held_out) >= 8


def test_every_shard_has_a_mix_of_files(sources, tmp_path):
    _, _, index = build_shards(sources, tmp_path, **SIZES | {"max_shards": 1000})
    for shard in index.shards[:-1]:
        assert len(set(tokens(tmp_path, [shard])[:, 0].tolist())) > 10


def test_what_is_left_makes_a_last_smaller_shard(sources, tmp_path):
    _, _, index = build_shards(sources, tmp_path, **SIZES | {"max_shards": 1000})
    assert {shard.samples for shard in index.shards[:-1]} == {20}
    assert 1 <= index.shards[-1].samples <= 20


def test_nothing_need_be_held_out(sources, tmp_path):
    _, _, index = build_shards(sources, tmp_path, **SIZES | {"held_out_samples": 0})
    assert index.held_out == ()


def test_too_little_text_is_said(sources, tmp_path):
    for some, sizes in ((sources, {"held_out_samples": 10_000}), ([], {}), (sources[:1], {"held_out_samples": 0})):
        with raises(DataError, match="too little text"):
            build_shards(some, tmp_path, **SIZES | sizes)


def test_sizes_that_make_no_shard_are_refused(sources, tmp_path):
    for sizes in ({"samples_per_shard": 10**7}, {"sequence_length": 0}, {"max_shards": 0}, {"held_out_samples": -1}):
        with pytest.raises(BadInput):
            build_shards(sources, tmp_path, **SIZES | sizes)


def test_a_file_that_cannot_be_read_and_a_folder_that_cannot_be_written_are_named(sources, tmp_path):
    with raises(DataError, match="gone"):
        build_shards([*sources, *[tmp_path / f"gone{n}" for n in range(200)]], tmp_path / "x", **SIZES)
    (tmp_path / "file").write_text("")
    with raises(StorageError, match="file"):
        build_shards(sources, tmp_path / "file", **SIZES)


def test_the_standard_library_is_cut_quickly_and_without_its_tests(tmp_path):
    sources = library_sources()
    assert len(sources) > 200
    assert sources == sorted(sources)
    assert not any({"test", "tests", "site-packages"} & set(path.parts) for path in sources)
    begun = time.process_time()
    _, _, index = build_shards(
        sources, tmp_path, sequence_length=128, samples_per_shard=4096, max_shards=16, held_out_samples=256
    )
    assert time.process_time() - begun < 3
    assert sum(shard.samples for shard in index.shards) > 30_000
    text = bytes(tokens(tmp_path, index.held_out[:1])[0])
    assert text.isascii()


def test_an_interpreter_without_sources_is_said(tmp_path):
    with raises(DataError, match="no Python sources"):
        library_sources(tmp_path / "frozen.zip")
