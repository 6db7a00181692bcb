import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from english import in_english
from skep.core.errors import DataError
from skep.core.project.data import ImageLayout, ShardIndex, ShardRef, TextLayout
from skep.core.project.shards import (
    INDEX_BYTES_LIMIT,
    LOTS,
    Claim,
    Claims,
    PeerOrder,
    claim_of,
    format_index,
    parse_index,
    permutation,
    sample_order,
    shard_address,
    shard_order,
)

LENGTH = 16
LAYOUT = TextLayout(LENGTH, 256)
SHARD = {"sha256": "a" * 64, "bytes": 10 * LENGTH + 80, "samples": 10}
OTHER = SHARD | {"sha256": "b" * 64}


def body(**changes):
    return {"format": 1, "sequence_length": LENGTH, "vocabulary": 256, "shards": [SHARD]} | changes


def parse(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return parse_index(raw, LAYOUT)


def make_index(*samples, held_out=()):
    def refs(counts, letter):
        return tuple(
            ShardRef(f"{letter}{number:063x}", count * LENGTH + 80, count) for number, count in enumerate(counts)
        )

    return ShardIndex(LAYOUT, refs(samples, "a"), refs(held_out, "b"))


def drawn(order, start, count):
    """(pass, shard, row) of each sample, as a peer draws them that knows no others."""
    while count > 0:
        span = order.locate(start)
        taken = min(count, span.count)
        rows = order.samples_of(span)[span.offset : span.offset + taken]
        yield from ((span.pass_number, span.shard.sha256, row) for row in rows)
        start, count = start + taken, count - taken


# --- reading the index


def test_a_good_index_is_read_with_and_without_held_out_shards():
    assert parse(body()) == ShardIndex(LAYOUT, (ShardRef("a" * 64, 240, 10),))
    assert parse(body(held_out=[OTHER])).held_out == (ShardRef("b" * 64, 240, 10),)


def test_fewer_tokens_than_the_model_has_are_what_the_shards_are_held_to():
    assert parse(body(vocabulary=200)).layout == TextLayout(LENGTH, 200)


IMAGES = ImageLayout(3, 8, 10)
PICTURES = {"sha256": "a" * 64, "bytes": 5 * (3 * 8 * 8 + 4) + 150, "samples": 5}


def images(**changes):
    return json.dumps({"format": 1, "channels": 3, "size": 8, "classes": 10, "shards": [PICTURES]} | changes).encode()


def test_an_index_of_images_is_read_back():
    index = ShardIndex(IMAGES, (ShardRef("a" * 64, PICTURES["bytes"], 5),))
    assert parse_index(images(), IMAGES) == index
    assert parse_index(format_index(index), IMAGES) == index
    assert parse_index(images(classes=7), IMAGES).layout == ImageLayout(3, 8, 7)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (images(channels=1), "channels must be 3"),
        (images(size=16), "size must be 8"),
        (images(classes=11), "classes must be a whole number from 1 to 10"),
        (images(sequence_length=8), "sequence_length is not a known field"),
        (images(shards=[PICTURES | {"bytes": 5 * 3 * 8 * 8}]), "shards[0].bytes does not fit its samples"),
        (json.dumps(body()).encode(), "sequence_length is not a known field"),
    ],
)
def test_an_index_of_images_that_does_not_fit_the_model_is_refused(raw, said):
    with pytest.raises(DataError) as caught:
        parse_index(raw, IMAGES)
    assert said in in_english(caught.value.title)


def test_int32_tokens_fit_too():
    assert parse(body(shards=[SHARD | {"bytes": 10 * LENGTH * 4 + 80}])).shards[0].bytes == 720


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=5),
    st.lists(st.integers(1, 1000), max_size=3),
)
def test_what_was_written_is_read_back(samples, held_out):
    index = make_index(*samples, held_out=held_out)
    assert parse(format_index(index)) == index


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "not a JSON object"),
        (b'{"format": 1, "format": 1}', "format appears twice"),
        (b'{"format": NaN}', "NaN is not a number"),
        (b'{"format": 1' + b"0" * 5000 + b"}", "far too large"),
        (b" " * (INDEX_BYTES_LIMIT + 1), "larger than 2048 KiB"),
        (body(format=2), "format must be 1"),
        (body(format=True), "format must be 1"),
        (body(format=10**400), "far too large"),
        (body(sequence_length=17), "sequence_length must be 16"),
        (body(vocabulary=257.0), "vocabulary must be a whole number from 1 to 256"),
        (body(vocabulary=0), "vocabulary must be a whole number from 1 to 256"),
        (body(vocabulary=257), "vocabulary must be a whole number from 1 to 256"),
        (body(color="red"), "color is not a known field"),
        (body(**{"\x1b[31m\u202e": 1}), "??31m? is not a known field"),
        ({"format": 1, "sequence_length": LENGTH, "vocabulary": 256}, "shards is missing"),
        (body(shards={}), "shards must be a list"),
        (body(shards=[]), "shards must be a list of 1 to"),
        (body(shards=[1]), "shards[0] must be an object"),
        (body(held_out=None), "held_out must be a list"),
        (body(shards=[SHARD, SHARD | {"sha256": "A" * 64}]), "shards[1].sha256 must be a SHA-256 in 64"),
        pytest.param(
            body(shards=[SHARD | {"sha256": "../" * 20}]),
            "shards[0].sha256 must be a SHA-256 in 64",
            marks=pytest.mark.way_in,
        ),
        (body(shards=[SHARD | {"sha256": "a" * 64 + "\n"}]), "shards[0].sha256 must be a SHA-256 in 64"),
        (body(shards=[SHARD | {"bytes": 1.5}]), "shards[0].bytes must be a whole number from 1 to"),
        (body(shards=[SHARD | {"bytes": True}]), "shards[0].bytes must be a whole number from 1 to"),
        (body(shards=[SHARD | {"bytes": 2**40}]), "shards[0].bytes must be a whole number from 1 to"),
        (body(shards=[SHARD | {"samples": 0}]), "shards[0].samples must be a whole number from 1 to"),
        (body(shards=[SHARD | {"samples": 10**9}]), "shards[0].samples must be a whole number from 1 to"),
        (body(shards=[SHARD | {"bytes": 10 * LENGTH - 1}]), "shards[0].bytes does not fit its samples"),
        (body(shards=[SHARD | {"bytes": 200_000}]), "shards[0].bytes does not fit its samples"),
        (body(shards=[SHARD | {"name": "x"}]), "shards[0].name is not a known field"),
        (body(shards=[{"sha256": "a" * 64, "bytes": 240}]), "shards[0].samples is missing"),
        (body(shards=[SHARD, SHARD]), "is listed twice"),
        (body(held_out=[SHARD]), "is listed twice"),
    ],
)
def test_a_bad_index_is_refused_in_one_sentence_that_names_the_field(raw, said):
    with pytest.raises(DataError) as caught:
        parse(raw)
    assert said in in_english(caught.value.title)
    assert in_english(caught.value.title).endswith(".")
    assert in_english(caught.value.hint)


@settings(max_examples=40)
@given(st.binary(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_bytes_give_an_index_or_a_data_error(raw):
    with pytest.raises(DataError):
        parse_index(raw if isinstance(raw, bytes) else raw.encode(), LAYOUT)


@pytest.mark.parametrize(
    ("index", "shard"),
    [
        ("https://a.org/tiny/index.json", "https://a.org/tiny/{}"),
        ("https://a.org/tiny/index.json?x=/1#y", "https://a.org/tiny/{}"),
        ("http://127.0.0.1:80/i", "http://127.0.0.1:80/{}"),
        ("https://a.org", "https://a.org/{}"),
        ("https://a.org/tiny/", "https://a.org/tiny/{}"),
    ],
)
def test_a_shard_lies_beside_its_index(index, shard):
    assert shard_address(index, "a" * 64) == shard.format("a" * 64 + ".safetensors")


# --- order


@given(st.binary(max_size=40), st.integers(0, 300))
def test_a_permutation_holds_every_number_once(seed, count):
    assert sorted(permutation(seed, count)) == list(range(count))


def test_a_permutation_is_the_same_for_ever():
    # with other results, every volunteer would continue with other samples after a restart
    assert permutation(b"skep", 10) == (4, 3, 1, 5, 7, 8, 6, 0, 2, 9)
    assert shard_order("peer", "run", 0, 8) == (1, 3, 2, 4, 0, 5, 7, 6)


def test_all_orders_of_three_come_up_about_equally_often():
    counts = {}
    for number in range(6000):
        order = permutation(number.to_bytes(4, "big"), 3)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())


def test_peers_passes_runs_and_shards_have_orders_of_their_own():
    shard = ShardRef("a" * 64, 10_000, 100)
    orders = [
        shard_order("p", "r", 0, 100),
        shard_order("q", "r", 0, 100),
        shard_order("p", "s", 0, 100),
        shard_order("p", "r", 1, 100),
        sample_order("r", 0, shard),
        sample_order("s", 0, shard),
        sample_order("r", 1, shard),
        sample_order("r", 0, ShardRef("b" * 64, 10_000, 100)),
    ]
    assert len(set(orders)) == len(orders)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 3))
def test_every_sample_comes_exactly_once_in_each_pass(samples, passes_before):
    index = make_index(*samples)
    total = sum(samples)
    seen = list(drawn(PeerOrder(index, "p", "r"), passes_before * total, total))
    assert {number for number, _, _ in seen} == {passes_before}
    everything = {(shard.sha256, row) for shard in index.shards for row in range(shard.samples)}
    assert len(seen) == total
    assert {(sha256, row) for _, sha256, row in seen} == everything


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
    st.lists(st.integers(1, 25), min_size=1, max_size=12),
    st.data(),
)
def test_a_restart_at_any_batch_goes_on_as_if_nothing_had_happened(samples, batches, data):
    index = make_index(*samples)
    whole = list(drawn(PeerOrder(index, "p", "r"), 0, sum(batches)))
    stop = data.draw(st.integers(0, len(batches) - 1))
    position = sum(batches[:stop])
    again = PeerOrder(index, "p", "r")
    restarted = []
    for batch in batches[stop:]:
        restarted += drawn(again, position, batch)
        position += batch
    assert restarted == whole[sum(batches[:stop]) :]


def test_two_peers_overlap_little_in_their_first_tenth_of_a_large_index():
    index = make_index(*[50] * 400)

    def first_tenth(peer):
        return {(sha256, row) for _, sha256, row in drawn(PeerOrder(index, peer, "r"), 0, 2000)}

    overlap = len(first_tenth("12D3KooWA") & first_tenth("12D3KooWB")) / 2000
    assert overlap < 0.25


# --- lots and claims

ALL = (1 << 10 * LOTS) - 1


def lots(order, begin, end):
    """The lots of an order between two positions."""
    found = []
    while begin < end:
        found.append(order.locate(begin).lot)
        begin += order.locate(begin).count
    return found


@pytest.mark.parametrize("samples", [[1000] * 5, [3, 1, 500], [10] * 300, [5]])
def test_the_lots_of_all_peers_are_the_same_and_divide_the_data(samples):
    index, total = make_index(*samples), sum(samples)
    ours, others = (lots(PeerOrder(index, peer, "r"), total, 2 * total) for peer in ("p", "q"))
    assert set(ours) == set(others)
    assert sum(lot.count for lot in ours) == total
    assert sorted(lot.number for lot in ours) == list(range(len(ours)))
    assert len(ours) >= min(LOTS, total // 4)
    assert ours != others or len(samples) == 1


def test_a_lot_that_another_peer_holds_is_passed_over():
    index = make_index(*[40] * 10)
    order = PeerOrder(index, "p", "r")
    first, second, third = lots(order, 0, 12)[:3]
    other = Claims((Claim(0, 1 << first.number | 1 << second.number), Claim(1, 1 << third.number)))
    assert order.next_free(0, other) == first.count + second.count
    assert order.next_free(0, Claims()) == 0
    claim = order.claim(first.count + second.count + 1)
    assert claim == Claim(0, 1 << first.number | 1 << second.number | 1 << third.number)


def test_a_pass_of_which_others_hold_everything_is_left_for_the_next():
    order = PeerOrder(make_index(*[40] * 10), "p", "r")
    first = order.locate(400).lot
    assert order.next_free(120, Claims((Claim(0, ALL),))) == 400
    assert order.next_free(120, Claims((Claim(0, ALL), Claim(1, 1 << first.number)))) == 400 + first.count


def test_claims_to_everything_stop_nobody():
    order = PeerOrder(make_index(*[40] * 10), "p", "r")
    everything = Claims(tuple(Claim(number, ALL) for number in range(3)))
    assert order.next_free(120, everything) == 800  # the first lot of the pass after the one that half have reached


def test_a_newcomer_begins_in_the_pass_of_the_others_and_one_liar_takes_nobody_along():
    order = PeerOrder(make_index(*[40] * 10), "p", "r")
    assert order.next_free(40, Claims((Claim(7, 0), Claim(7, 0), Claim(2**31 - 1, 0)))) == 7 * 400
    assert order.next_free(40, Claims((Claim(0, 0), Claim(2**31 - 1, 0)))) == 40


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"pass": 1},
        {"pass": -1, "lots": b""},
        {"pass": 2**31, "lots": b""},
        {"pass": 1.0, "lots": b""},
        {"pass": 1, "lots": "x"},
        {"pass": 1, "lots": bytes(4097)},
    ],
)
def test_a_record_that_is_no_claim_is_ignored(value):
    assert claim_of(value) is None


def test_a_claim_is_read_from_a_record():
    assert claim_of({"pass": 3, "lots": b"\x05\x01"}) == Claim(3, 0b1_0000_0101)
