"""The self-test's attacks in rounds: what a member of a group says of itself, sends as its part, and returns as an average."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final

import torch
from hivemind.averaging.partition import AllreduceException
from hivemind.compression import serialize_torch_tensor
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils import MSGPackSerializer

from skep.worker.attempts import LEVELS, UNDECODABLE, nested, raises, within_time
from skep.worker.swarm.averaging.groups import LONGEST_EPOCH, from_message, is_credible
from skep.worker.swarm.averaging.parts import UnlikeOurs, checked
from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.robust import JUDGES, LOOSE, Combination, Median, Part, RobustMean

HUGE: Final = 1e6
VALUES: Final = 64


def false_claims() -> bool:
    """What a member of a group says of itself: its bandwidth, and the epoch that it brings."""
    mode, data = 0, MSGPackSerializer.dumps(None)
    bad = [MSGPackSerializer.dumps((bandwidth, mode, data)) for bandwidth in (HUGE, -1.0, math.nan, "all")]
    bad += [MSGPackSerializer.dumps((None, 99, data)), nested(LEVELS), UNDECODABLE]
    return (
        is_credible(MSGPackSerializer.dumps((None, mode, data)))
        and not any(map(is_credible, bad))
        and from_message(b"9" * (LONGEST_EPOCH + 1)) is None
    )


def bad_parts() -> bool:
    """Parts that are not finite, of another shape or kind or number, and weights that are none."""
    good = torch.ones(4)
    bad: list[tuple[int, torch.Tensor, float]] = [
        (0, torch.tensor([math.nan, 1.0, 1.0, 1.0]), 1.0),
        (0, torch.tensor([math.inf, 1.0, 1.0, 1.0]), 1.0),
        (0, torch.ones(5), 1.0),
        (0, torch.ones(1), 1.0),
        (0, torch.ones(2, 2), 1.0),
        (0, torch.ones(4, dtype=torch.int64), 1.0),
        (1, good, 1.0),
        (-1, good, 1.0),
        (0, good, math.nan),
        (0, good, math.inf),
        (0, good, -1.0),
    ]

    async def sent(number: int, values: torch.Tensor, weight: float) -> None:
        senders: Any = [b"own", b"hostile"]
        reducer = CheckedReducer([torch.Size([4])], senders, RobustMean(b"own"), 0)
        await reducer.accumulate_part(1, number, values, weight)

    return all(raises(AllreduceException, partial(within_time, sent(*each))) for each in bad)


def undecoded_parts() -> bool:
    """Parts of kinds and sizes that would take much memory; a peer sends them as its own, and as what it has averaged."""
    good = serialize_torch_tensor(torch.ones(VALUES))
    text, large = (runtime_pb2.Tensor.FromString(good.SerializeToString()) for _ in range(2))
    text.dtype, large.size[0] = f"U{VALUES}", VALUES**3

    async def received(part: runtime_pb2.Tensor) -> None:
        async def sent() -> AsyncGenerator[averaging_pb2.AveragingData, None]:
            yield averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART, tensor_part=part)

        async for _ in checked(sent(), [VALUES]):
            pass

    within_time(received(good))
    return all(raises(UnlikeOurs, partial(within_time, received(each))) for each in (text, large))


def large_gradients() -> bool:
    return _largest_of(RobustMean("peer 0")) <= LOOSE


def false_parameters() -> bool:
    return _largest_of(Median()) <= 1.0


def _largest_of(combination: Combination) -> float:
    """The largest value of the combination of ones and one peer's huge values."""
    honest = [Part(f"peer {number}", torch.ones(4), 1.0) for number in range(JUDGES)]
    combination.begin()
    return float(combination.combine(0, [*honest, Part("hostile", torch.full((4,), HUGE), 1.0)]).values.max())
