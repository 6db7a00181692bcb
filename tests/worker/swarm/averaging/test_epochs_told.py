"""What epoch each peer of a group says itself, and when its leader's word counts. Two all-reduces in one process, no network."""

import asyncio
from types import SimpleNamespace

import pytest
import torch
from hivemind.averaging.allreduce import AllReduceRunner, AveragingMode
from hivemind.p2p import PeerID
from hivemind.p2p.servicer import ServicerBase
from hivemind.utils import MSGPackSerializer

from groupmates import Lasting
from skep.worker.swarm.averaging.all_reduce import PromptAllReduce
from skep.worker.swarm.averaging.groups import EPOCH, GROUP_ID_BYTES, Groups, as_message, from_message
from skep.worker.swarm.averaging.robust import RobustMean

A, B, C, D = (PeerID(name) for name in (b"a", b"b", b"c", b"d"))
GROUP = b"group"
VALUES, PART_BYTES = 64, 64
DEADLINE = 60.0
NODE, CLIENT = AveragingMode.NODE, AveragingMode.CLIENT


async def serve(serving, answers):
    async for answer in serving:
        answers.put_nowait(answer)
    answers.put_nowait(None)


async def received(answers):
    while (answer := await answers.get()) is not None:
        yield answer


class Network:
    """Calls between all-reduces in this process."""

    def __init__(self):
        self.runners = runners = {}

        self.served = served = []

        class Calls(ServicerBase):
            @classmethod
            def get_stub(cls, p2p, peer, *, namespace):
                async def call(parts):
                    answers = asyncio.Queue()
                    serving = runners[peer].rpc_aggregate_part(parts, SimpleNamespace(remote_id=p2p.peer_id))
                    served.append(asyncio.create_task(serve(serving, answers)))
                    return received(answers)

                return SimpleNamespace(rpc_aggregate_part=call)

        self.calls = Calls

    def join(self, kind, peer, value, modes, **options):
        shares = [0.0 if mode is CLIENT else 1.0 for mode in modes]
        self.runners[peer] = kind(
            p2p=SimpleNamespace(peer_id=peer),
            servicer_type=self.calls,
            prefix=None,
            group_id=GROUP,
            tensors=[torch.full((VALUES,), value)],
            ordered_peer_ids=[A, B],
            peer_fractions=[share / sum(shares) for share in shares],
            modes=modes,
            part_size_bytes=PART_BYTES,
            sender_timeout=DEADLINE,
            reducer_timeout=2 * DEADLINE,
            **options,
        )

    def ours(self, peer, value, modes, epoch):
        self.join(PromptAllReduce, peer, value, modes, company=Lasting(), combination=RobustMean(peer), epoch=epoch)

    async def average(self):
        """The changes of the values of both peers: to the mean of 1.0 and 1.2."""

        async def changes(runner):
            return torch.cat([change async for change in runner])

        first, second = await asyncio.wait_for(asyncio.gather(*map(changes, self.runners.values())), DEADLINE)
        assert first.tolist() == pytest.approx([0.1] * VALUES)
        assert second.tolist() == pytest.approx([-0.1] * VALUES)


@pytest.mark.parametrize("other", [NODE, CLIENT])
def test_each_hears_the_epoch_of_the_other_from_itself(other):
    async def main():
        network = Network()
        network.ours(A, 1.0, [NODE, other], 5)
        network.ours(B, 1.2, [NODE, other], 6)
        await network.average()
        assert [network.runners[peer].epochs for peer in (A, B)] == [{B: 6}, {A: 5}]
        assert network.runners[A].weights == {B: 1.0}

    asyncio.run(main())


def test_a_stock_peer_averages_with_us_and_says_nothing():
    async def main():
        network = Network()
        network.ours(A, 1.0, [NODE, NODE], 5)
        network.join(AllReduceRunner, B, 1.2, [NODE, NODE])
        await network.average()
        assert network.runners[A].epochs == {}

    asyncio.run(main())


def test_the_leaders_word_counts_between_peers_that_reduce_nothing_only():
    async def main():
        network = Network()
        network.ours(A, 1.0, [NODE, CLIENT], 5)
        network.ours(B, 1.2, [NODE, CLIENT], 6)
        await network.average()
        for peer, other, epoch in ((A, B, 6), (B, A, 5)):
            network.runners[peer].hear_through_leader({A: 99, B: 99})
            assert network.runners[peer].epochs[other] == epoch  # what it has said itself
        client = network.runners[B]
        client.ordered_peer_ids, client.peer_fractions = (A, B, C, D), (1.0, 0.0, 0.0, 0.0)
        client.hear_through_leader({A: 99, C: 7, D: None})
        assert client.epochs == {A: 5, C: 7, B: 99}

    asyncio.run(main())


def test_a_peer_without_an_epoch_says_nothing():
    async def main():
        network = Network()
        network.ours(A, 1.0, [NODE, NODE], None)
        network.ours(B, 1.2, [NODE, NODE], 6)
        await network.average()
        assert [network.runners[peer].epochs for peer in (A, B)] == [{B: 6}, {}]

    asyncio.run(main())


@pytest.mark.parametrize("epoch", [None, 0, 7, 10**9 - 1])
def test_an_epoch_is_read_as_it_was_written(epoch):
    assert from_message(as_message(epoch)) == epoch


@pytest.mark.parametrize("said", [b"", b"-1", b"1.0", b" 1", b"1_0", b"9" * 10, "\u0663".encode(), b"\xff"])
def test_what_is_no_epoch_is_not_one(said):
    assert from_message(said) is None


class Step:
    def __init__(self, epoch):
        self.data_for_gather = MSGPackSerializer.dumps([1.0, 0, MSGPackSerializer.dumps({EPOCH: epoch})])


def test_the_epoch_of_a_round_is_that_of_the_step_that_found_its_group():
    groups, found = Groups(dict), b"found".ljust(GROUP_ID_BYTES)
    groups.found(b"another".ljust(GROUP_ID_BYTES), Step(8))
    assert groups.epoch_of(found) is None
    groups.found(found, Step(7))
    assert groups.epoch_of(found) == 7
