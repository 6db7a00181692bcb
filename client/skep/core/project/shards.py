"""The shard index of a project, and the order in which a peer draws samples. Pure.

A shard index is JSON and declares the content of its shards::

    {"format": 1, "sequence_length": 128, "vocabulary": 256,
     "shards": [{"sha256": "…", "bytes": 524384, "samples": 4096}], "held_out": []}

A shard is a safetensors file. With `sequence_length` and `vocabulary` it has one tensor: `tokens`, uint8 or int32, of
shape [samples, sequence_length]. With `channels`, `size` and `classes` instead it has two: `pixels`, uint8, of shape
[samples, channels, size, size], and `labels`, int32, of shape [samples].
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import to_builtins
from msgspec.structs import asdict, replace

from skep.core.errors import DataError
from skep.core.project.addresses import beside
from skep.core.project.data import ImageLayout, Layout, ShardIndex, ShardRef, TextLayout
from skep.core.project.fields import HASH, Field, FieldError, Object, Several, Whole
from skep.core.strict_json import read_object
from skep.core.text import Text

INDEX_BYTES_LIMIT: Final = 2 * 1024 * 1024
SHARD_BYTES_LIMIT: Final = 256 * 1024 * 1024
"""A shard is read and checked as a whole, so it must be small compared with a computer's memory."""
SHARD_SAMPLES_LIMIT: Final = 262_144
"""All samples of a shard are shuffled in one call; this many take about 0.2 s."""

_HEADER_BYTES_LIMIT: Final = 64 * 1024
_TOKEN_BYTES: Final = (1, 4)
LABEL_BYTES: Final = 4
_SHARD: Final = Object(
    ShardRef,
    {"sha256": HASH, "bytes": Whole(1, SHARD_BYTES_LIMIT), "samples": Whole(1, SHARD_SAMPLES_LIMIT)},
)


# --- reading the index


def parse_index(raw: bytes, expected: Layout) -> ShardIndex:
    """The index in `raw`, for a model that expects samples of this layout. Raises DataError that names the field.

    It may have fewer tokens or classes than the model; otherwise the layouts must be equal.
    """
    body = {"held_out": []} | read_object(raw, INDEX_BYTES_LIMIT, _invalid)
    # the lists have no limit of their own: their length is limited by the size of the index
    shards = {"shards": Several(_SHARD, 1, INDEX_BYTES_LIMIT), "held_out": Several(_SHARD, 0, INDEX_BYTES_LIMIT)}
    fields: dict[str, Field] = {"format": Whole(1, 1), **_layout_fields(expected), **shards}
    try:
        read = Object(dict, fields).read(body, "")
    except FieldError as error:
        raise _invalid(error.text) from None
    layout: Layout = replace(expected, **{name: read[name] for name in expected.__struct_fields__})
    index = ShardIndex(layout, read["shards"], read["held_out"])
    for name in ("shards", "held_out"):
        for number, shard in enumerate(read[name]):
            _check_size(shard, layout, f"{name}[{number}]")
    _check_distinct(index.shards + index.held_out)
    return index


def format_index(index: ShardIndex) -> bytes:
    """The JSON that `parse_index` reads back; the same index always gives the same bytes."""
    body = {
        "format": 1,
        **asdict(index.layout),
        "shards": to_builtins(index.shards),
        "held_out": to_builtins(index.held_out),
    }
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _layout_fields(expected: Layout) -> dict[str, Field]:
    exact = asdict(expected)
    most = "vocabulary" if isinstance(expected, TextLayout) else "classes"
    return {name: Whole(1 if name == most else number, number) for name, number in exact.items()}


def _invalid(what: Text) -> DataError:
    return DataError(
        Text("shards.project_shard_index_not_valid", what=what),
        Text("shards.tell_project_publisher_nothing_data"),
    )


def _check_size(shard: ShardRef, layout: Layout, where: str) -> None:
    if not any(0 <= shard.bytes - shard.samples * each <= _HEADER_BYTES_LIMIT for each in sample_bytes(layout)):
        raise _invalid(Text("shards.bytes_does_not_fit_samples", where=where))


def sample_bytes(layout: Layout) -> tuple[int, ...]:
    """The possible sizes of a sample in a shard, in bytes."""
    if isinstance(layout, ImageLayout):
        return (layout.channels * layout.size**2 + LABEL_BYTES,)
    return tuple(layout.sequence_length * width for width in _TOKEN_BYTES)


def _check_distinct(shards: tuple[ShardRef, ...]) -> None:
    for sha256, count in Counter(shard.sha256 for shard in shards).items():
        if count > 1:
            raise _invalid(Text("shards.shard_listed_twice", sha256=sha256[:12]))


# --- names and addresses


def shard_name(sha256: str) -> str:
    """The file name of a shard, locally and on the server; locally also of other files stored by hash."""
    return f"{sha256}.safetensors"


def shard_address(index_address: str, sha256: str) -> str:
    """The address of a shard: beside its index. A query or fragment of the index's address is dropped."""
    return beside(index_address, shard_name(sha256))


# --- the order of one peer


def permutation(seed: bytes, count: int) -> tuple[int, ...]:
    """The numbers below `count`, shuffled (Fisher-Yates). Equal on every computer and every version of Python."""
    numbers = list(range(count))
    # 64 bits for each draw: the bias of the remainder stays below 1e-13 for any allowed count
    draws = struct.unpack(f"<{count}Q", hashlib.shake_256(seed).digest(8 * count))
    for last in range(count - 1, 0, -1):
        other = draws[last] % (last + 1)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return tuple(numbers)


def shard_order(peer_id: str, run_id: str, pass_number: int, count: int) -> tuple[int, ...]:
    """The order in which this peer takes the `count` shards in its pass `pass_number` (from 0) over the data."""
    return permutation(_seed("shards", peer_id, run_id, pass_number), count)


def sample_order(peer_id: str, run_id: str, pass_number: int, shard: ShardRef) -> tuple[int, ...]:
    """The order in which this peer takes the samples inside one shard in its pass `pass_number`."""
    return permutation(_seed("samples", peer_id, run_id, pass_number, shard.sha256), shard.samples)


def _seed(*parts: str | int) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


@dataclass(frozen=True)
class Span:
    """`count` consecutive samples of a peer's order: from `offset` in its order of `shard`, in one pass."""

    pass_number: int
    shard: ShardRef
    offset: int
    count: int


@dataclass(frozen=True)
class _Pass:
    number: int
    shards: tuple[ShardRef, ...]
    ends: tuple[int, ...]
    """Cumulative samples up to the end of each shard."""


class PeerOrder:
    """The order in which a peer draws all samples, pass after pass; a position is the number of samples drawn.

    The same peer, run and index give the same order, so that a restart continues at its position.
    """

    def __init__(self, index: ShardIndex, peer_id: str, run_id: str) -> None:
        self._index = index
        self._peer_id = peer_id
        self._run_id = run_id
        self._samples = sum(shard.samples for shard in index.shards)
        self._pass = self._order_pass(0)

    def locate(self, position: int) -> Span:
        """The span from `position` to the end of its shard."""
        number, within = divmod(position, self._samples)
        if self._pass.number != number:
            self._pass = self._order_pass(number)
        place = bisect.bisect_right(self._pass.ends, within)
        shard = self._pass.shards[place]
        left = self._pass.ends[place] - within
        return Span(number, shard, shard.samples - left, left)

    def spans(self, position: int, count: int) -> Iterator[Span]:
        """The next `count` samples from `position` on, one span per shard."""
        while count > 0:
            span = self.locate(position)
            taken = min(count, span.count)
            yield Span(span.pass_number, span.shard, span.offset, taken)
            position += taken
            count -= taken

    def samples_of(self, span: Span) -> tuple[int, ...]:
        """All rows of the span's shard in this peer's order; the span is a slice of it."""
        return sample_order(self._peer_id, self._run_id, span.pass_number, span.shard)

    def _order_pass(self, number: int) -> _Pass:
        order = shard_order(self._peer_id, self._run_id, number, len(self._index.shards))
        shards = tuple(self._index.shards[place] for place in order)
        return _Pass(number, shards, tuple(itertools.accumulate(shard.samples for shard in shards)))
