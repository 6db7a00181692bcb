"""A part of the tensors as another peer sends it, checked before it is decoded.

Stock behaviour that this corrects, covered by a test: a part is decoded as its sender says. Its kind may be text of a
thousand letters, which takes four kilobytes for each value; and one that requires a gradient makes a history of all that
is computed from it. A reducer's answer of another shape ends the round.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from hivemind.averaging.partition import AllreduceException
from hivemind.proto import averaging_pb2, runtime_pb2

KINDS: Final = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
"""The kinds of tensors that are averaged, with the bytes of a value."""
LEGACY_BFLOAT16: Final = 4
"""hivemind has a mode in which bfloat16 is sent as float32."""
STATISTICS: Final = 8
"""Bytes of a mean and a deviation."""
COUNT: Final = 8
"""Bytes of the number of entries of a table."""
ENTRY: Final = 4
"""Bytes of an entry."""
ENTRIES: Final = 256
"""Of the table of an 8-bit codec."""
BLOCK: Final = 4096
"""Values for which a blockwise codec has an entry in another table."""


class UnlikeOurs(AllreduceException):
    """A part is not what this peer's own part of that number is."""


def check(part: runtime_pb2.Tensor, values: int) -> None:
    """Raises UnlikeOurs unless this can be so many values in one dimension, as a codec of hivemind encodes them."""
    if part.dtype not in KINDS or part.requires_grad:
        raise UnlikeOurs("a part is of a kind that is not averaged")
    if list(part.size) != [values] or not _is_encoded(part, values):
        raise UnlikeOurs("a part has another size than ours")


def _is_encoded(part: runtime_pb2.Tensor, values: int) -> bool:
    """Whether the part's codec makes so many bytes, and tables of that length, of so many values."""
    length = len(part.buffer)
    match part.compression:
        case runtime_pb2.NONE:
            legacy = part.dtype == "bfloat16" and length == LEGACY_BFLOAT16 * values
            return legacy or length == KINDS[part.dtype] * values
        case runtime_pb2.FLOAT16:
            return length == KINDS["float16"] * values
        case runtime_pb2.MEANSTD_16BIT:
            return length == KINDS["float16"] * values + STATISTICS
        case runtime_pb2.UNIFORM_8BIT | runtime_pb2.QUANTILE_8BIT:
            entries = [ENTRIES]
        case runtime_pb2.BLOCKWISE_8BIT:
            entries = [-(-values // BLOCK), ENTRIES]
        case _:
            return False
    told = b"".join(count.to_bytes(COUNT, "little") for count in entries)
    return part.buffer.startswith(told) and length == len(told) + ENTRY * sum(entries) + values


async def checked(
    messages: AsyncGenerator[averaging_pb2.AveragingData, None], sizes: Sequence[int]
) -> AsyncGenerator[averaging_pb2.AveragingData, None]:
    """The messages, whose parts must have these numbers of values. Raises UnlikeOurs at the first that has not."""
    left = iter(sizes)
    async with aclosing(messages):
        async for message in messages:
            values = next(left, None)
            if values is None:
                raise UnlikeOurs("there is no such part")
            check(message.tensor_part, values)
            yield message
