"""A groupmate that is lost while it sends its data: hivemind waits for its next part, and we do not. No network."""

import asyncio
from types import SimpleNamespace

import pytest
import torch
from hivemind.averaging.allreduce import AllReduceRunner, AveragingMode
from hivemind.compression import serialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.p2p.servicer import ServicerBase
from hivemind.proto import averaging_pb2

from skep.worker.swarm.averaging.all_reduce import PromptAllReduce
from skep.worker.swarm.averaging.robust import RobustMean

OURS, THEIRS = PeerID(b"ours"), PeerID(b"theirs")
GROUP = b"group"
LONG, SOON, DEADLINE = 3600.0, 2.0, 60.0
"""Seconds: that a sender may be silent; after which one that waits is said to wait; for a busy computer."""
VALUES, PART_BYTES = 64, 64
"""Four parts of 16 values."""


class Losing:
    """Says that the groupmate is lost once `lost` is set."""

    def __init__(self):
        self.lost = asyncio.Event()

    async def until_lost(self, _peer, _patience):
        await self.lost.wait()


class Case:
    """A peer that reduces everything, and one that only sends: the first part, and then as `then` says."""

    def __init__(self, kind, **options):
        self.tensor = torch.zeros(VALUES)
        self.runner = kind(
            p2p=SimpleNamespace(peer_id=OURS),
            servicer_type=ServicerBase,
            prefix=None,
            group_id=GROUP,
            tensors=[self.tensor],
            ordered_peer_ids=[OURS, THEIRS],
            peer_fractions=(1.0, 0.0),
            modes=[AveragingMode.NODE, AveragingMode.CLIENT],
            sender_timeout=LONG,
            reducer_timeout=2 * LONG,
            part_size_bytes=PART_BYTES,
            **options,
        )
        self.sent = asyncio.Event()

    async def _stream(self, then):
        part = serialize_torch_tensor(torch.ones_like(self.runner.parts_for_local_averaging[0]))
        code = averaging_pb2.PART_FOR_AVERAGING
        yield averaging_pb2.AveragingData(code=code, group_id=GROUP, tensor_part=part, weight=1.0)
        self.sent.set()
        await then()
        for _ in self.runner.parts_for_local_averaging[1:]:
            yield averaging_pb2.AveragingData(tensor_part=part, weight=1.0)

    async def _receive(self, then):
        async for _ in self.runner.rpc_aggregate_part(self._stream(then), SimpleNamespace(remote_id=THEIRS)):
            pass

    async def _average(self):
        async for change in self.runner:
            self.tensor += change

    async def begun(self, then):
        """The tasks of the round, once the first part was received."""
        tasks = [asyncio.create_task(each) for each in (self._average(), self._receive(then))]
        await asyncio.wait_for(self.sent.wait(), DEADLINE)
        while not self.runner.tensor_part_reducer.num_parts_received[1]:  # noqa: ASYNC110 - hivemind has no event for it
            await asyncio.sleep(0)
        return tasks


async def for_ever():
    await asyncio.Event().wait()


async def end(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("ours", [False, True], ids=["stock", "ours"])
def test_a_sender_that_is_lost_after_its_first_part_is_not_waited_for(ours):
    async def main():
        losing = Losing()
        case = Case(PromptAllReduce, company=losing, combination=RobustMean(OURS)) if ours else Case(AllReduceRunner)
        round_, receiving = await case.begun(for_ever)
        losing.lost.set()
        await asyncio.wait({round_}, timeout=DEADLINE if ours else SOON)
        ended = round_.done()
        await end(round_, receiving)
        return ended, case

    ended, case = asyncio.run(main())
    assert ended == ours
    if ours:
        assert case.runner.banned_senders == {THEIRS}
        # its first part is averaged, the others are our own
        assert case.tensor.tolist() == [0.5] * (VALUES // 4) + [0.0] * (3 * VALUES // 4)


def test_a_sender_that_is_slow_and_not_lost_is_waited_for():
    async def main():
        case, goes_on = Case(PromptAllReduce, company=Losing(), combination=RobustMean(OURS)), asyncio.Event()
        round_, receiving = await case.begun(goes_on.wait)
        goes_on.set()
        await asyncio.wait_for(asyncio.gather(round_, receiving), DEADLINE)
        return case

    case = asyncio.run(main())
    assert case.tensor.tolist() == [0.5] * VALUES
    assert not case.runner.banned_senders


async def at_once():
    pass


@pytest.mark.parametrize(("answers", "ours", "banned"), [(4, False, True), (4, True, False), (3, True, True)])
def test_a_sender_may_close_its_stream_once_it_has_all_answers(answers, ours, banned):
    async def main():
        case = Case(PromptAllReduce, company=Losing(), combination=RobustMean(OURS)) if ours else Case(AllReduceRunner)
        average = asyncio.create_task(case._average())
        stream = case.runner.rpc_aggregate_part(case._stream(at_once), SimpleNamespace(remote_id=THEIRS))
        async with asyncio.timeout(DEADLINE):
            for _ in range(answers):
                await anext(stream)
            await stream.aclose()
        await end(average)
        return case.runner.banned_senders

    assert asyncio.run(main()) == ({THEIRS} if banned else set())
