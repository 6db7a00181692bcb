"""How often an averager that is alone queries the DHT for peers that search for a group: stock's, and ours."""

import multiprocessing

import pytest
import torch
from hivemind.averaging import matchmaking
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.averaging.partition import AllreduceException
from hivemind.dht import DHT
from hivemind.optim.grad_averager import GradientAverager

import forked_peers
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.search import LOOK_SECONDS

SEARCH_SECONDS = 3.0
PREFIX = "alone"
GROUPS = f"{PREFIX}.0b"
"""With this begin the keys under which averagers are looked for."""


@pytest.fixture
def looks(monkeypatch):
    """The number of queries, in all processes."""
    count, look = multiprocessing.Value("i"), DHT.get

    def counted(self, key, *args, **kwargs):
        if key.startswith(GROUPS):
            with count:
                count.value += 1
        return look(self, key, *args, **kwargs)

    monkeypatch.setattr(matchmaking, "GroupKeyManager", GroupKeyManager)  # stock's own, unlike in other tests
    monkeypatch.setattr(DHT, "get", counted)
    return count


@pytest.fixture
def search(make_dhts):
    """Lets an averager search for a group without other peers until its timeout."""
    made = []

    def run(kind):
        parameter = torch.nn.Parameter(torch.zeros(4))
        averager = kind(
            [parameter],
            dht=make_dhts(1)[0],
            prefix=PREFIX,
            start=True,
            min_matchmaking_time=SEARCH_SECONDS,
            request_timeout=1.0,
        )
        made.append(averager)
        averager.wait_until_ready(30)
        # the wait has a longer limit: with the same one, either of the two processes could time out first
        step = averager.step(timeout=SEARCH_SECONDS, allow_retries=False, wait=False)
        with pytest.raises(AllreduceException, match="could not find a group"):
            step.result(10 * SEARCH_SECONDS)

    yield run
    forked_peers.end(made)


@pytest.mark.alone
def test_stock_asks_without_a_pause(looks, search):
    search(GradientAverager)
    assert looks.value > 3 * SEARCH_SECONDS / LOOK_SECONDS


def test_ours_asks_a_few_times_a_second(looks, search):
    search(CheckedGradientAverager)
    assert 3 <= looks.value <= SEARCH_SECONDS / LOOK_SECONDS + 2
