"""Parts of a round that a peer sends: for which groups they are awaited, taken or refused, and what is kept of them."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace

import pytest
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import as_aiter

from skep.worker.swarm.averagers import CheckedGradientAverager
from skep.worker.swarm.groups import KEPT, Groups

PEER = "a peer"
WEIGHT = 3.0
STEP, OTHER = object(), object()
SOON = 0.05
"""Seconds after which an unknown group is refused here."""
TAKEN, REFUSED = [averaging_pb2.AVERAGED_PART], [averaging_pb2.BAD_GROUP_ID]


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
    made._groups = Groups(lambda: made._running_groups, SOON)
    made._parent_pid = 0  # so that hivemind's destructor shuts nothing down
    return made


async def answers(averager, group_id):
    part = averaging_pb2.AveragingData(code=averaging_pb2.PART_FOR_AVERAGING, group_id=group_id, weight=WEIGHT)
    context = SimpleNamespace(remote_id=PEER)
    return [answer.code async for answer in averager.rpc_aggregate_part(as_aiter(part), context)]


def start(averager, group_id):
    averager._running_groups[group_id] = asyncio.Future()
    averager._running_groups[group_id].set_result(Group())
    averager._groups.tell()


def test_nothing_is_kept_for_groups_that_do_not_run(averager):
    async def flood():
        return await asyncio.gather(*(answers(averager, f"group {number}".encode()) for number in range(100)))

    assert asyncio.run(flood()) == [REFUSED] * 100
    assert not averager._incoming_weights


def test_the_weight_of_a_groupmate_is_kept_also_if_it_sends_before_the_group_is_known(averager):
    async def early():
        sent = asyncio.create_task(answers(averager, b"ours"))
        await asyncio.sleep(0)
        start(averager, b"ours")
        return await sent

    assert asyncio.run(early()) == TAKEN
    assert averager._incoming_weights == {b"ours": {PEER: WEIGHT}}


def test_a_part_waits_for_a_group_that_was_found_however_late_the_round_is_due(averager):
    async def early():
        averager._groups.found(b"ours", STEP)
        sent = asyncio.create_task(answers(averager, b"ours"))
        averager._groups.found(b"another", OTHER)
        averager._groups.end(OTHER)
        await asyncio.sleep(4 * SOON)
        assert not sent.done()
        start(averager, b"ours")
        return await sent

    assert asyncio.run(early()) == TAKEN


@pytest.mark.parametrize("group_id", [b"ours", b"ours and a phase of PowerSGD"])
def test_a_part_for_a_group_that_is_over_is_refused_at_once(averager, group_id):
    averager._groups = Groups(lambda: averager._running_groups, unknown_seconds=3600.0)

    async def late():
        averager._groups.found(b"ours", STEP)
        waited = asyncio.create_task(answers(averager, group_id))
        await asyncio.sleep(0)
        averager._groups.end(STEP)
        return [await asyncio.wait_for(waited, 10), await asyncio.wait_for(answers(averager, group_id), 10)]

    assert asyncio.run(late()) == [REFUSED, REFUSED]


def test_the_memory_of_groups_is_bounded():
    groups = Groups(dict)
    for number in range(10 * KEPT):
        groups.found(bytes([number % 256]), STEP)
        groups.end(STEP)
    assert not groups._found
    assert len(groups._over) == KEPT
