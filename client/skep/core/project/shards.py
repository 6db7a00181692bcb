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
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from msgspec import to_builtins
from msgspec.structs import asdict, replace

from skep.core.errors import DataError
from skep.core.project.data import ImageLayout, Layout, ShardIndex, ShardRef, TextLayout
from skep.core.strict_json import read_object, shown
from skep.core.text import Text

INDEX_BYTES_LIMIT: Final = 2 * 1024 * 1024
SHARD_BYTES_LIMIT: Final = 256 * 1024 * 1024
"""A shard is read and checked as a whole, so it must be small compared with a computer's memory."""
SHARD_SAMPLES_LIMIT: Final = 262_144
"""All samples of a shard are shuffled in one call; this many take about 0.2 s."""

_HEADER_BYTES_LIMIT: Final = 64 * 1024
_TOKEN_BYTES: Final = (1, 4)
LABEL_BYTES: Final = 4
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


# --- reading the index


def parse_index(raw: bytes, expected: Layout) -> ShardIndex:
    """The index in `raw`, for a model that expects samples of this layout. Raises DataError that names the field.

    It may have fewer tokens or classes than the model; otherwise the layouts must be equal.
    """
    body = read_object(raw, INDEX_BYTES_LIMIT, _invalid)
    _check_keys(body, {"format", "shards", *expected.__struct_fields__}, {"held_out"}, "")
    _check_equal(body, "format", 1)
    layout = _parse_layout(body, expected)
    shards = _parse_shards(body["shards"], "shards", layout)
    held_out = _parse_shards(body.get("held_out", []), "held_out", layout)
    if not shards:
        raise _invalid(Text("shards.shards_empty"))
    _check_distinct(shards + held_out)
    return ShardIndex(layout, shards, held_out)


def format_index(index: ShardIndex) -> bytes:
    """The JSON that `parse_index` reads back; the same index always gives the same bytes."""
    body = {
        "format": 1,
        **asdict(index.layout),
        "shards": to_builtins(index.shards),
        "held_out": to_builtins(index.held_out),
    }
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _parse_layout(body: dict[str, Any], expected: Layout) -> Layout:
    if isinstance(expected, TextLayout):
        _check_equal(body, "sequence_length", expected.sequence_length)
        return replace(expected, vocabulary=_at_most(body, "vocabulary", expected.vocabulary))
    _check_equal(body, "channels", expected.channels)
    _check_equal(body, "size", expected.size)
    return replace(expected, classes=_at_most(body, "classes", expected.classes))


def _at_most(body: dict[str, Any], name: str, most: int) -> int:
    found = body[name]
    if type(found) is not int or found < 1:
        raise _invalid(Text("shards.not_whole_number_above_0", name=name))
    if found > most:
        raise _invalid(Text("shards.where_model_has", name=name, found=found, most=most))
    return found


def _invalid(what: Text) -> DataError:
    return DataError(
        Text("shards.project_shard_index_not_valid", what=what),
        Text("shards.tell_project_publisher_nothing_data"),
    )


def _check_keys(body: dict[str, Any], required: set[str], optional: set[str], where: str) -> None:
    if missing := required - body.keys():
        raise _invalid(Text("shards.missing", where=where, missing=min(missing)))
    if unknown := body.keys() - required - optional:
        raise _invalid(Text("shards.not_known_field", where=where, unknown=shown(min(unknown))))


def _check_equal(body: dict[str, Any], name: str, expected: int) -> None:
    found = body[name]
    if type(found) is not int:
        raise _invalid(Text("shards.name_not_whole_number", name=name))
    if found != expected:
        raise _invalid(Text("shards.where_expected", name=name, found=found, expected=expected))


def _parse_shards(value: Any, name: str, layout: Layout) -> tuple[ShardRef, ...]:
    if not isinstance(value, list):
        raise _invalid(Text("shards.not_list", name=name))
    return tuple(_parse_shard(item, f"{name}[{number}]", layout) for number, item in enumerate(value))


def _parse_shard(value: Any, where: str, layout: Layout) -> ShardRef:
    if not isinstance(value, dict):
        raise _invalid(Text("shards.not_object", where=where))
    _check_keys(value, {"sha256", "bytes", "samples"}, set(), f"{where}.")
    sha256 = value["sha256"]
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise _invalid(Text("shards.sha256_not_64_lower_case", where=where))
    size = _whole_number(value["bytes"], f"{where}.bytes", SHARD_BYTES_LIMIT)
    samples = _whole_number(value["samples"], f"{where}.samples", SHARD_SAMPLES_LIMIT)
    _check_size(size, samples, layout, where)
    return ShardRef(sha256, size, samples)


def _whole_number(value: Any, where: str, limit: int) -> int:
    if type(value) is not int:
        raise _invalid(Text("shards.where_not_whole_number", where=where))
    if not 1 <= value <= limit:
        raise _invalid(Text("shards.not_between_1", where=where, limit=limit))
    return value


def _check_size(size: int, samples: int, layout: Layout, where: str) -> None:
    if not any(0 <= size - samples * each <= _HEADER_BYTES_LIMIT for each in sample_bytes(layout)):
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
    parts = urlsplit(index_address)
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{shard_name(sha256)}", "", ""))


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
