import hashlib

import pytest
import torch
from safetensors.torch import save

from english import in_english, raises
from skep.core.errors import DataError
from skep.core.project.data import ShardIndex, ShardRef, TextLayout
from skep.core.text import Problem, verbatim
from skep.worker.training.data import Samples, open_shard

LENGTH = 8
VOCABULARY = 100
LAYOUT = TextLayout(LENGTH, VOCABULARY)
GONE = Problem(verbatim("The server is down."), verbatim("Try again later."))


class Store:
    """Shards as files in a folder, and the requested shards."""

    def __init__(self, folder):
        self.folder = folder
        self.asked = []

    def add(self, tokens, raw=None):
        raw = raw or save({"tokens": tokens})
        sha256 = hashlib.sha256(raw).hexdigest()
        self.path(sha256).write_bytes(raw)
        return ShardRef(sha256, len(raw), len(tokens))

    def path(self, sha256):
        return self.folder / f"{sha256}.safetensors"

    def make_index(self, *counts, held_out=()):
        """Every sample repeats one token: its number over all shards, the held-out ones last."""
        numbers = iter(range(sum(counts) + sum(held_out)))

        def shard(count):
            rows = torch.tensor([next(numbers) for _ in range(count)], dtype=torch.uint8)
            return self.add(rows[:, None].expand(-1, LENGTH).contiguous())

        return ShardIndex(LAYOUT, tuple(map(shard, counts)), tuple(map(shard, held_out)))

    def open(self, index, position=0, peer="peer"):
        return Samples(index, peer, "run", position, self.asked.append)

    def answer(self, data):
        """Hand over all requested shards."""
        for sha256 in self.asked:
            data.arrived(sha256, str(self.path(sha256)))
        handed, self.asked[:] = list(self.asked), []
        return handed


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def draw(store, data, batches):
    seen = []
    for size in batches:
        while not data.ready(size):
            assert store.answer(data)
        batch = data.next_batch(size).inputs
        assert batch.shape == (size, LENGTH)
        assert batch.dtype == torch.int64
        seen += batch[:, 0].tolist()
    return seen


def test_batches_hold_every_sample_once_in_a_pass_across_shards_of_any_size(store):
    data = store.open(store.make_index(7, 1, 12, 5, 2))
    first, second = draw(store, data, [4] * 6 + [3]), draw(store, data, [9] * 3)
    assert sorted(first) == sorted(second) == list(range(27))
    assert first != second
    assert data.position == 54


def test_one_batch_may_be_larger_than_all_the_data(store):
    data = store.open(store.make_index(2, 1))
    assert sorted(draw(store, data, [7, 2])) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_restart_goes_on_where_it_was(store):
    index = store.make_index(7, 1, 12, 5, 2)
    whole = draw(store, store.open(index), [5] * 12)
    stopped = store.open(index)
    before = draw(store, stopped, [5] * 4)
    assert before + draw(store, store.open(index, stopped.position), [5] * 8) == whole


def test_each_pass_over_one_shard_has_an_order_of_its_own(store):
    data = store.open(store.make_index(30))
    assert draw(store, data, [30]) != draw(store, data, [30])


def test_two_peers_draw_in_different_orders(store):
    index = store.make_index(30, 30)
    assert draw(store, store.open(index, peer="a"), [30]) != draw(store, store.open(index, peer="b"), [30])


def test_what_is_needed_and_one_shard_ahead_is_asked_for_once(store):
    data = store.open(store.make_index(10, 10, 10, 10))
    assert not data.ready(4)
    assert not data.ready(4)
    assert len(store.asked) == 2
    first, ahead = store.answer(data)
    draw(store, data, [4, 4])
    assert not store.asked
    assert data.ready(4)
    assert len(store.asked) == 1
    assert store.asked[0] not in (first, ahead)


def test_a_batch_is_not_ready_before_all_its_shards_are_there(store):
    data = store.open(store.make_index(10, 10))
    data.ready(1)
    first, second = store.asked
    data.arrived(first, str(store.path(first)))
    assert data.ready(10)
    assert not data.ready(11)
    data.arrived(second, str(store.path(second)))
    assert data.ready(11)


def test_taking_a_batch_that_is_not_there_is_refused_and_moves_nothing(store):
    data = store.open(store.make_index(10))
    with pytest.raises(DataError):
        data.next_batch(1)
    assert data.position == 0


def test_shards_behind_are_let_go(store):
    data = store.open(store.make_index(5, 5, 5))
    draw(store, data, [5, 5, 3])
    assert len(data._open) == 1


def test_a_shard_that_was_thrown_out_of_the_cache_is_asked_for_again(store):
    data = store.open(store.make_index(5))
    data.ready(1)
    (sha256,) = store.asked
    data.arrived(sha256, str(store.folder / "evicted.safetensors"))
    assert not data.ready(1)
    assert store.asked == [sha256, sha256]
    data.arrived(sha256, str(store.path(sha256)))
    assert data.ready(1)


def test_what_is_planned_is_the_next_batch_and_no_shard_is_asked_for_or_opened(store):
    data = store.open(store.make_index(4, 4))
    data.plan(6)
    assert not store.asked
    planned = data._planned
    data.ready(6)
    assert data._planned is planned
    store.answer(data)
    data.plan(6)
    assert not data._open
    assert len(set(draw(store, data, [6, 2]))) == 8


def test_a_shard_that_fails_is_asked_for_once_more_and_then_said(store):
    data = store.open(store.make_index(5))
    data.ready(1)
    data.failed(store.asked[0], GONE)
    assert not data.ready(1)
    assert len(store.asked) == 2
    data.failed(store.asked[0], GONE)
    with pytest.raises(DataError) as caught:
        data.ready(1)
    assert caught.value.problem == GONE


def test_a_shard_ahead_that_fails_stops_nothing_until_it_is_needed(store):
    data = store.open(store.make_index(10, 10))
    data.ready(1)
    first, ahead = store.asked
    data.arrived(first, str(store.path(first)))
    data.failed(ahead, GONE)
    store.asked.clear()
    assert len(draw(store, data, [5, 5])) == 10
    assert not store.asked
    assert not data.ready(1)
    assert store.asked[0] == ahead
    store.answer(data)
    assert data.ready(1)


# --- held out


def test_held_out_samples_are_always_the_same_and_never_trained_on(store):
    data = store.open(store.make_index(20, held_out=(4, 4)))
    assert data.held_out(6) is None
    store.answer(data)
    assert data.held_out(6) is None
    store.answer(data)
    held_out = data.held_out(6).inputs
    assert held_out.dtype == torch.int64
    assert held_out[:, 0].tolist() == [20, 21, 22, 23, 24, 25]
    assert not set(draw(store, data, [20])) & set(range(20, 28))
    for path in store.folder.iterdir():
        path.unlink()
    assert torch.equal(data.held_out(6).inputs, held_out)
    assert data.held_out(2).inputs[:, 0].tolist() == [20, 21]


def test_more_held_out_samples_than_there_are_gives_all_of_them(store):
    data = store.open(store.make_index(5, held_out=(3,)))
    assert data.held_out(1) is None
    store.answer(data)
    assert len(data.held_out(1)) == 1
    assert data.held_out(100).inputs[:, 0].tolist() == [5, 6, 7]


def test_a_project_without_held_out_shards_gives_none(store):
    data = store.open(store.make_index(5))
    assert data.held_out(4) is None
    assert not store.asked


# --- shard files


def test_int32_tokens_are_read(store):
    tokens = torch.arange(16, dtype=torch.int32).reshape(2, LENGTH)
    shard = store.add(tokens)
    assert torch.equal(open_shard(store.path(shard.sha256), shard, LAYOUT).inputs, tokens)


def rows(count=2, length=LENGTH, dtype=torch.uint8, value=1):
    return torch.full((count, length), value, dtype=dtype)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"not a shard at all", "not a safetensors file"),
        (b"\xff" * 100, "not a safetensors file"),
        (b"", "not a safetensors file"),
        (save({"tokens": rows()})[:-1], "not a safetensors file"),
        (save({"token": rows()}), "exactly one tensor"),
        (save({"tokens": rows(), "more": rows()}), "exactly one tensor"),
        (save({}), "exactly one tensor"),
        (save({"tokens": rows(dtype=torch.int64)}), "neither uint8 nor int32"),
        (save({"tokens": rows(dtype=torch.float32)}), "neither uint8 nor int32"),
        (save({"tokens": rows(3)}), "2 samples of 8 tokens"),
        (save({"tokens": rows(length=7)}), "2 samples of 8 tokens"),
        (save({"tokens": rows().flatten()}), "2 samples of 8 tokens"),
        (save({"tokens": rows(value=100)}), "outside 0 to 99"),
        (save({"tokens": rows(dtype=torch.int32, value=-1)}), "outside 0 to 99"),
        (save({"tokens": rows(dtype=torch.int32, value=100)}), "outside 0 to 99"),
    ],
)
def test_a_file_that_is_not_what_was_promised_is_refused_in_words(tmp_path, raw, said):
    path = tmp_path / "shard"
    path.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        open_shard(path, ShardRef("a" * 64, len(raw), 2), LAYOUT)
    assert said in in_english(caught.value.title)
    assert "aaaaaaaaaaaa…" in in_english(caught.value.title)


def test_a_file_of_another_size_is_refused(store):
    shard = store.add(rows())
    with store.path(shard.sha256).open("ab") as file:
        file.write(b"x")
    with raises(DataError, match="size that the index states"):
        open_shard(store.path(shard.sha256), shard, LAYOUT)


def test_a_path_that_cannot_be_read_is_refused_in_words(store):
    index = store.make_index(5)
    data = store.open(index)
    data.ready(1)
    data.arrived(index.shards[0].sha256, str(store.folder / ("n" * 300)))
    with raises(DataError, match="cannot be read"):
        data.ready(1)
