"""The shard index of a project, the order in which a peer draws samples, and their division among peers. Pure.

A shard index is JSON and declares the content of its shards::

    {"format": 1, "sequence_length": 128, "vocabulary": 256,
     "shards": [{"sha256": "…", "bytes": 524384, "samples": 4096}], "held_out": []}

A shard is a safetensors file. With `sequence_length` and `vocabulary` it has one tensor: `tokens`, uint8 or int32, of
shape [samples, sequence_length]. With `channels`, `size` and `classes` instead it has two: `pixels`, uint8, of shape
[samples, channels, size, size], and `labels`, int32, of shape [samples].
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import json
import operator
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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


# --- the order of one peer, and what others hold

LOTS: Final = 128
"""The data is divided into at least this many lots, if it has as many samples: a shard, or an equal part of one."""


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


def sample_order(run_id: str, pass_number: int, shard: ShardRef) -> tuple[int, ...]:
    """The order of the samples inside one shard in a pass: the same for all peers, so that its lots are disjoint."""
    return permutation(_seed("samples", run_id, pass_number, shard.sha256), shard.samples)


def _seed(*parts: str | int) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


@dataclass(frozen=True)
class Lot:
    """`count` samples of a shard from `offset` of its order; `number` is the lot's bit in a set of lots."""

    number: int
    shard: ShardRef
    offset: int
    count: int


@dataclass(frozen=True)
class Span:
    """`count` consecutive samples of a lot, from `offset` in the order of its shard, in one pass."""

    pass_number: int
    lot: Lot
    offset: int
    count: int

    @property
    def shard(self) -> ShardRef:
        return self.lot.shard


@dataclass(frozen=True)
class _Pass:
    number: int
    lots: tuple[Lot, ...]
    ends: tuple[int, ...]
    """Cumulative samples up to the end of each lot."""


@dataclass(frozen=True)
class Claim:
    """What one peer says of the data: in its pass, the lots (as bits) that it has drawn, draws, or left to others."""

    pass_number: int
    lots: int


@dataclass(frozen=True)
class Claims:
    """The claims of the other peers of a swarm."""

    others: tuple[Claim, ...] = ()

    @property
    def pass_number(self) -> int:
        """The pass that at least half of them have reached; 0 without any."""
        passes = sorted(claim.pass_number for claim in self.others)
        return passes[(len(passes) - 1) // 2] if passes else 0

    def held(self, pass_number: int) -> int:
        """The lots that they hold in a pass, as bits."""
        return functools.reduce(
            operator.or_, (claim.lots for claim in self.others if claim.pass_number == pass_number), 0
        )


MOST_PASSES: Final = 2**31
MOST_LOTS_BYTES: Final = 4096
"""A set of lots in bytes: an index of the largest size has fewer."""


def claim_of(value: Any) -> Claim | None:
    """The claim in another peer's record; None if there is none in it."""
    match value:
        case {"pass": int(number), "lots": bytes(lots)} if 0 <= number < MOST_PASSES and len(lots) <= MOST_LOTS_BYTES:
            return Claim(number, int.from_bytes(lots, "little"))
        case _:
            return None


class PeerOrder:
    """The order in which a peer passes over all samples; a position is the number of samples that it has passed.

    The same peer, run and index give the same order, so that a restart continues at its position. A lot that another
    peer holds is passed over without drawing it.
    """

    def __init__(self, index: ShardIndex, peer_id: str, run_id: str) -> None:
        self._peer_id = peer_id
        self._run_id = run_id
        self._samples = sum(shard.samples for shard in index.shards)
        self._lots = _lots(index.shards)
        self._pass = self._order_pass(0)

    def locate(self, position: int) -> Span:
        """The span from `position` to the end of its lot."""
        place, within = self._place(position)
        lot, left = self._pass.lots[place], self._pass.ends[place] - within
        return Span(self._pass.number, lot, lot.offset + lot.count - left, left)

    def claim(self, position: int) -> Claim:
        """What this peer claims when it draws at `position`: the lot there, and all before it in this pass."""
        place, _ = self._place(position)
        return Claim(self._pass.number, sum(1 << lot.number for lot in self._pass.lots[: place + 1]))

    def next_free(self, position: int, claims: Claims) -> int:
        """The position at or after that of a lot's begin where this peer draws next: the start of a free lot.

        It is in the pass that most others have reached, or in the next one when all lots of this pass are held. If
        the next pass too is held, it is the first lot of that pass: wrong claims divide the data worse, and stop no peer.
        """
        number = position // self._samples
        if claims.pass_number > number:
            number, position = claims.pass_number, claims.pass_number * self._samples
        following = (number + 1) * self._samples
        for begin in (position, following):
            if (free := self._first_free(begin, claims)) is not None:
                return free
        return following

    def samples_of(self, span: Span) -> tuple[int, ...]:
        """All rows of the span's shard in their order; the span is a slice of it."""
        return sample_order(self._run_id, span.pass_number, span.shard)

    def _first_free(self, position: int, claims: Claims) -> int | None:
        place, _ = self._place(position)
        lots, held = self._pass.lots[place:], claims.held(self._pass.number)
        begins = itertools.accumulate((lot.count for lot in lots), initial=position)
        return next((begin for lot, begin in zip(lots, begins, strict=False) if not held >> lot.number & 1), None)

    def _place(self, position: int) -> tuple[int, int]:
        """The place of a position's lot in its pass, and of the position in the pass."""
        number, within = divmod(position, self._samples)
        if self._pass.number != number:
            self._pass = self._order_pass(number)
        return bisect.bisect_right(self._pass.ends, within), within

    def _order_pass(self, number: int) -> _Pass:
        order = shard_order(self._peer_id, self._run_id, number, len(self._lots))
        lots = tuple(lot for place in order for lot in self._lots[place])
        return _Pass(number, lots, tuple(itertools.accumulate(lot.count for lot in lots)))


def _lots(shards: Sequence[ShardRef]) -> list[list[Lot]]:
    """The lots of each shard."""
    total, made, number = sum(shard.samples for shard in shards), list[list[Lot]](), 0
    for shard in shards:
        count = min(shard.samples, -(-LOTS * shard.samples // total))
        edges = [shard.samples * part // count for part in range(count + 1)]
        made.append([Lot(number + part, shard, edges[part], edges[part + 1] - edges[part]) for part in range(count)])
        number += count
    return made
