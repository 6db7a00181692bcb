"""A sender that dies while it waits for the average takes it from all others with hivemind's reducer, and not with ours."""

import asyncio

import pytest
import torch
from hivemind.averaging.partition import TensorPartReducer

from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.robust import RobustMean

PARTS = [torch.Size([4]), torch.Size([2])]
DYING, OTHER, LAST = range(3)


def sends(reducer, sender, part):
    return asyncio.create_task(reducer.accumulate_part(sender, part, torch.full(PARTS[part], 1 + sender / 10)))


async def one_dies(reducer):
    """What the two others get of the first part, which one of them sends after the third has died."""
    dying, other = sends(reducer, DYING, 0), sends(reducer, OTHER, 0)
    await asyncio.sleep(0)  # both wait
    dying.cancel()  # as the handler of a stream that is reset
    with pytest.raises(asyncio.CancelledError):
        await dying
    reducer.on_sender_failed(DYING)
    return await asyncio.gather(other, sends(reducer, LAST, 0), return_exceptions=True)


def test_with_the_stock_reducer_the_others_lose_the_average_too():
    async def averaged():
        return await one_dies(TensorPartReducer(PARTS, 3))

    first, second = asyncio.run(averaged())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, asyncio.InvalidStateError)


def test_with_ours_they_get_it_and_the_next_part_without_the_dead_one():
    async def averaged():
        reducer = CheckedReducer(PARTS, [DYING, OTHER, LAST], RobustMean(DYING), 0)
        first = await one_dies(reducer)
        assert [each.tolist() for each in first] == [pytest.approx([1.1] * 4)] * 2  # of all three
        return await asyncio.gather(sends(reducer, OTHER, 1), sends(reducer, LAST, 1))

    then = asyncio.run(averaged())
    assert [each.tolist() for each in then] == [pytest.approx([1.15] * 2)] * 2
