"""Rounds of honest peers with unequal samples, which pause and resume, one of them behind a slow, distant link.

Nobody's gradients are scaled down or left out, and nobody is banned: each average is the mean over samples.
"""

import asyncio
import random
from contextlib import contextmanager
from unittest import mock

import pytest
import torch
from hivemind.p2p import P2P

from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.returned import ROUNDS_UNKNOWN
from swarm_peers import run_round

SIZE = 300_000
"""Values: three parts."""
SAMPLES = (16, 1, 8, 4)
SLOW = 3
DELAY = 0.15
MATCHMAKING_SECONDS = 6.0
"""All have to find each other in it, also on a busy computer: each round is to have all members."""
RATE = 2_000_000
"""Bytes per second of one stream."""
NOISE = 3.0
"""Of one sample's gradient, beside the expected one."""
PAUSED = 0.2
"""How often a peer is not in a round. The two that begin are in each."""


@contextmanager
def slow_link():
    """Processes that are forked meanwhile send after a while, and slowly."""
    send = P2P.send_raw_data

    async def send_raw_data(data, writer, **options):
        await asyncio.sleep(DELAY + len(data) / RATE)
        await send(data, writer, **options)

    with mock.patch.object(P2P, "send_raw_data", staticmethod(send_raw_data)):
        yield


class Peers:
    def __init__(self, make_dhts, averagers):
        self.averagers = averagers
        self._add(make_dhts(SLOW))
        with slow_link():
            self._add(make_dhts(1)[SLOW:])
        self.chance = random.Random(1)
        self.noise = torch.Generator().manual_seed(1)
        self.expected = torch.randn(SIZE, generator=self.noise)

    def _add(self, dhts):
        for dht in dhts:
            parameter = torch.nn.Parameter(torch.zeros(SIZE))
            parameter.grad = torch.zeros(SIZE)
            averager = CheckedGradientAverager(
                [parameter],
                dht=dht,
                prefix="unequal",
                start=True,
                reuse_grad_buffers=True,
                min_matchmaking_time=MATCHMAKING_SECONDS,
                request_timeout=MATCHMAKING_SECONDS / 2,
                next_chunk_timeout=10.0,
                allreduce_timeout=50,
                most_samples=2 * sum(SAMPLES),
            )
            averager.step_batch = SAMPLES[len(self.averagers)]
            self.averagers.append(averager)

    def round(self):
        """One round of those that are not paused."""
        members = [peer for peer in range(len(SAMPLES)) if peer in {0, SLOW} or self.chance.random() > PAUSED]
        sent = {}
        for peer in members:
            noise = torch.randn(SIZE, generator=self.noise) * (NOISE / SAMPLES[peer] ** 0.5)
            sent[peer] = self.expected + noise
            self.averagers[peer].parameters[0].grad.copy_(sent[peer])
            self.averagers[peer].accumulate_grads_(SAMPLES[peer])
        mean = sum(sent[peer] * SAMPLES[peer] for peer in members) / sum(SAMPLES[peer] for peer in members)
        results = run_round(*(self.averagers[peer] for peer in members))
        for peer, result in zip(members, results, strict=True):
            others = {str(self.averagers[other].peer_id) for other in members if other != peer}
            assert (set(result.facts.heard), result.facts.missing, result.facts.complete) == (others, (), True)
            with self.averagers[peer].get_tensors() as tensors:
                assert torch.allclose(tensors[0], mean, atol=1e-4)


@pytest.mark.parametrize(
    "rounds",
    [
        ROUNDS_UNKNOWN + 2,
        pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(3 * 3600)]),
    ],
)
def test_no_honest_part_is_changed_and_nobody_banned(make_dhts, averagers, rounds):
    peers = Peers(make_dhts, averagers)
    for _ in range(rounds):
        peers.round()
