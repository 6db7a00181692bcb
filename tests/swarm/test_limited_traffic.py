"""Peers with a limit on their traffic: a state is handed over at that rate, and a round takes its time and counts."""

import time
from concurrent.futures import ThreadPoolExecutor

import hivemind
import pytest
import torch
from hivemind.p2p import P2P

import forked_peers
from skep.core.traffic import Caps
from skep.worker.connection.auth import guarded
from skep.worker.connection.network import ByteCounters, watch_streams
from skep.worker.connection.rates import Rates
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.state.download import Wanted
from skep.worker.swarm.state.pieces import Piece

PATIENCE = 120
RATE = 1_000_000
BEGUN = 200_000
"""Bytes after which a state is on its way: more than the questions before it, which take time and no bytes."""


@pytest.fixture
def limited():
    """The rates and the traffic of all processes that this one forks from now on."""
    stock = P2P.send_raw_data, P2P.receive_raw_data
    rates, traffic = Rates(Caps()), ByteCounters()
    watch_streams(traffic, rates)
    yield rates, traffic
    P2P.send_raw_data, P2P.receive_raw_data = map(staticmethod, stock)


@pytest.fixture
def enter(private_sockets, limited):
    """Starts an averager of `size` values of an open project, with its DHT."""
    dhts, averagers = [], []

    def start(size, value=0.0):
        seeds = [str(address) for dht in dhts for address in dht.get_visible_maddrs()]
        with guarded(None) as guard:
            dhts.append(hivemind.DHT(seeds, start=True, startup_timeout=PATIENCE, **guard))
        parameter = torch.nn.Parameter(torch.zeros(size))
        parameter.grad = torch.full((size,), value)
        averager = CheckedGradientAverager(
            [parameter],
            dht=dhts[-1],
            prefix="limited",
            start=True,
            reuse_grad_buffers=True,
            min_matchmaking_time=5.0,
            request_timeout=3.0,
            next_chunk_timeout=5.0,
            allreduce_timeout=60,
        )
        averager.accumulate_grads_(1)
        averagers.append(averager)
        return averager

    yield start
    forked_peers.end(averagers)
    forked_peers.end_dhts(dhts)


def when(moved, least):
    """The bytes that have moved once they are `least`, and the time of that in seconds."""
    deadline = time.monotonic() + PATIENCE
    while (value := moved()) < least:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value, time.monotonic()


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_state_is_handed_over_at_the_limit_of_the_donor_or_of_the_newcomer(enter, limited, direction):
    (rates, traffic), size = limited, 3_200_000
    donor, newcomer = enter(size), enter(size)
    donor.allow_state_sharing = True
    deadline = time.monotonic() + PATIENCE
    while not newcomer.dht.get("limited.all_averagers", latest=True):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    getattr(rates, direction).rate = RATE
    counter = traffic.sent if direction == "up" else traffic.received
    before = counter.value
    coming = newcomer.download(Wanted((Piece((size,), torch.float32, size * 4),)))
    begun = when(lambda: counter.value - before, BEGUN)
    ended = when(lambda: counter.value - before, size * 4)
    assert coming.wait() is not None
    moved, seconds = ended[0] - begun[0], ended[1] - begun[1]
    assert seconds >= 10
    assert moved / seconds == pytest.approx(RATE, rel=0.1)


def test_a_round_under_a_limit_takes_its_time_and_counts(enter, limited):
    (rates, traffic), size = limited, 2_500_000
    pair = enter(size, 1.0), enter(size, 3.0)
    rates.up.rate = RATE
    before = traffic.sent.value
    with ThreadPoolExecutor(2) as pool:
        begun = time.monotonic()
        controls = [averager.step(wait=False, timeout=PATIENCE) for averager in pair]
        results = list(pool.map(lambda control: control.result(PATIENCE), controls))
        seconds = time.monotonic() - begun
    assert all(result.facts.complete for result in results)
    for averager in pair:
        with averager.get_tensors() as tensors:
            assert float(tensors[0].mean()) == pytest.approx(2.0)
    # each sends half of its values and half of the averages, and both share one limit here
    moved = traffic.sent.value - before
    assert moved >= size * 4 * 2
    assert seconds >= moved / RATE * 0.95
