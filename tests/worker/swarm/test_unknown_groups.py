"""Parts of a round that a peer sends for a group: what is kept of them."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace

import pytest
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import as_aiter

from skep.worker.swarm.averagers import CheckedGradientAverager

PEER = "a peer"
WEIGHT = 3.0


class Group:
    """A running all-reduce that accepts every part."""

    async def rpc_aggregate_part(self, stream, _context):
        async for part in stream:
            yield averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART, group_id=part.group_id)


@pytest.fixture
def averager():
    """One without its process, as it is after `__init__`."""
    made = object.__new__(CheckedGradientAverager)
    made._admissions, made._incoming_weights, made._running_groups = None, defaultdict(dict), {}
    made._pending_groups_registered = asyncio.Event()
    made._parent_pid = 0  # so that hivemind's destructor shuts nothing down
    return made


async def answers(averager, group_id):
    part = averaging_pb2.AveragingData(code=averaging_pb2.PART_FOR_AVERAGING, group_id=group_id, weight=WEIGHT)
    context = SimpleNamespace(remote_id=PEER)
    return [answer.code async for answer in averager.rpc_aggregate_part(as_aiter(part), context)]


async def start(averager, group_id):
    averager._running_groups[group_id] = asyncio.Future()
    averager._running_groups[group_id].set_result(Group())
    averager._pending_groups_registered.set()


def test_nothing_is_kept_for_groups_that_do_not_run(averager):
    async def flood():
        averager._pending_groups_registered.set()
        return [await answers(averager, f"group {number}".encode()) for number in range(100)]

    assert asyncio.run(flood()) == [[averaging_pb2.BAD_GROUP_ID]] * 100
    assert not averager._incoming_weights


def test_the_weight_of_a_groupmate_is_kept_also_if_it_sends_before_the_group_is_known(averager):
    async def early():
        sent = asyncio.create_task(answers(averager, b"ours"))
        await asyncio.sleep(0)
        await start(averager, b"ours")
        return await sent

    assert asyncio.run(early()) == [averaging_pb2.AVERAGED_PART]
    assert averager._incoming_weights == {b"ours": {PEER: WEIGHT}}
