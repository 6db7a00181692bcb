"""How large what reducers return may be, beside our own gradients and what came back in earlier rounds. No network."""

import asyncio
import math
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from hivemind.averaging.allreduce import AllReduceRunner, AveragingMode
from hivemind.compression import serialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.p2p.servicer import ServicerBase
from hivemind.proto import averaging_pb2

from groupmates import Lasting
from skep.worker.swarm.averaging.all_reduce import PromptAllReduce
from skep.worker.swarm.averaging.returned import LARGEST, ROUNDS_UNKNOWN, UsualNorms
from skep.worker.swarm.averaging.robust import RobustMean

SIZES = [[4, 4], [8]]
OURS, FIRST, SECOND = PeerID(b"ours"), PeerID(b"first"), PeerID(b"second")
GROUP = b"group"
VALUES, PART = 64, 16
DEADLINE = 60.0


def known(*norms, returned=None):
    """What is known after a few rounds in which our parts, and what came back, had these norms."""
    usual = UsualNorms()
    for _ in range(ROUNDS_UNKNOWN):
        assert usual.begin(norms, SIZES) == [math.inf] * len(SIZES)
        for number, norm in enumerate(returned or norms):
            usual.see(number, norm)
    return usual


@pytest.mark.parametrize(
    ("usual", "own", "limits"),
    [
        pytest.param(known(3.0, 4.0, 5.0), (3.0, 4.0, 5.0), (5.0, 5.0), id="as always"),
        pytest.param(known(3.0, 4.0, 5.0), (0.0, 0.0, 0.0), (5.0, 5.0), id="nothing of ours in this round"),
        pytest.param(known(3.0, 4.0, 5.0), (30.0, 40.0, 50.0), (50.0, 50.0), id="all gradients have grown"),
        pytest.param(
            known(0.0, 0.0, 5.0, returned=(6.0, 8.0, 5.0)), (0.0, 0.0, 5.0), (10.0, math.sqrt(62.5)), id="others' only"
        ),
        pytest.param(known(0.0, 0.0, 5.0), (0.0, 0.0, 5.0), (math.sqrt(12.5), 5.0), id="nothing ever"),
    ],
)
def test_the_limit_of_a_reducer_is_a_multiple_of_what_its_parts_usually_have(usual, own, limits):
    assert usual.begin(own, SIZES) == pytest.approx([LARGEST * limit for limit in limits])


def test_one_round_of_large_averages_does_not_raise_the_limits():
    usual = known(3.0, 4.0, 5.0)
    usual.begin((3.0, 4.0, 5.0), SIZES)
    for number in range(3):
        usual.see(number, 1e9)
    assert usual.begin((3.0, 4.0, 5.0), SIZES) == pytest.approx([LARGEST * 5.0] * 2)


# --- in a round


class Reducer(ServicerBase):
    """Peers that return, for each value that is sent, `averages` of their id."""

    averages: ClassVar = {}

    def __init__(self, peer):
        self.peer = peer

    @classmethod
    def get_stub(cls, _p2p, peer, namespace):
        assert namespace is None
        return cls(peer)

    async def rpc_aggregate_part(self, parts):
        return self._answers([part async for part in parts])

    async def _answers(self, parts):
        for part in parts:
            answer = averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART)
            own = torch.frombuffer(bytearray(part.tensor_part.buffer), dtype=torch.float32)
            delta = torch.full((PART,), float(self.averages[self.peer])) - own
            answer.tensor_part.CopyFrom(serialize_torch_tensor(delta))
            yield answer


def a_round(averages, combination=None, own=1.0, weight=1.0):
    """What our gradients are after a round whose two reducers return these averages, and the runner."""

    async def run():
        tensor = torch.full((VALUES,), own)
        made = (AllReduceRunner if combination is None else PromptAllReduce)(
            p2p=SimpleNamespace(peer_id=OURS),
            servicer_type=type("Servicer", (Reducer,), {"averages": averages}),
            prefix=None,
            group_id=GROUP,
            tensors=[tensor],
            ordered_peer_ids=[FIRST, OURS, SECOND],
            peer_fractions=(0.5, 0.0, 0.5),
            modes=[AveragingMode.NODE, AveragingMode.CLIENT, AveragingMode.NODE],
            sender_timeout=DEADLINE,
            reducer_timeout=2 * DEADLINE,
            part_size_bytes=4 * PART,
            weight=weight,
            **({"company": Lasting(), "combination": combination} if combination else {}),
        )
        async for change in made:
            tensor += change
        return tensor.tolist(), made

    return asyncio.run(asyncio.wait_for(run(), DEADLINE))


HONEST = {FIRST: 2.0, SECOND: 3.0}
HALF = VALUES // 2
FALSE = [3e4, -3e4, math.nan, math.inf]


def after_rounds(count, weight=1.0):
    combination = RobustMean(OURS)
    for _ in range(count):
        assert a_round(HONEST, combination, weight=weight)[0] == [2.0] * HALF + [3.0] * HALF
    return combination


@pytest.mark.parametrize("false", FALSE)
def test_what_is_far_larger_than_gradients_are_is_not_used_and_its_reducer_banned(false):
    combination = after_rounds(ROUNDS_UNKNOWN)
    found, made = a_round({FIRST: 2.0, SECOND: false}, combination)
    assert found == [2.0] * HALF + [1.0] * HALF
    assert made.banned_senders == {SECOND}
    assert [peer for peer in (FIRST, SECOND) if made._company.avoids(peer)] == [SECOND]
    assert made.tensor_part_container.failed_size == HALF
    # what is known of our gradients is as before
    assert a_round(HONEST, combination)[0] == [2.0] * HALF + [3.0] * HALF


def test_stock_uses_it():
    assert a_round({FIRST: 2.0, SECOND: 3e4})[0] == [2.0] * HALF + [3e4] * HALF


def test_gradients_that_grow_for_all_are_used():
    combination = after_rounds(ROUNDS_UNKNOWN)
    assert a_round({FIRST: 200.0, SECOND: 300.0}, combination, own=100.0)[0] == [200.0] * HALF + [300.0] * HALF


def test_nothing_is_refused_in_a_round_in_which_we_count_for_nothing():
    combination = after_rounds(ROUNDS_UNKNOWN)
    assert (
        a_round({FIRST: 200.0, SECOND: 300.0}, combination, own=0.0, weight=0.0)[0] == [200.0] * HALF + [300.0] * HALF
    )
