"""What a node of the DHT that hangs costs the requests of the others: with hivemind's list of such nodes, and with ours."""

import asyncio
import time
from functools import partial

import pytest
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.utils import get_dht_time

import forked_peers
from skep.worker.connection.unresponsive import PAUSES, ask_in_background, pass_over
from skep.worker.swarm.averaging.search import DECLARE_SECONDS, UnhurriedKeys
from swarm_peers import wait_until

SLOW = 2.8
"""Seconds from which on a request has waited for the node that hangs: hivemind waits 3 s for it."""
AGAIN = PAUSES[0] + 3.0 + 1.0
"""Seconds after which hivemind's list has forgotten it, and ours has asked it again in the background."""


def seconds_of_a_request(dht):
    begun = time.monotonic()
    dht.get("some key", latest=True)
    return time.monotonic() - begun


def slow_requests(dht):
    """How many requests wait for the node that hangs, during AGAIN."""
    slow, until = 0, time.monotonic() + AGAIN
    while time.monotonic() < until:
        slow += seconds_of_a_request(dht) > SLOW
        time.sleep(0.2)  # as often as a search for a group looks
    return slow


@pytest.mark.parametrize("ours", [False, True])
def test_who_waits_for_a_node_that_hangs(make_dhts, ours):
    dhts = make_dhts(4)
    asking, hanging = dhts[1], dhts[3]
    if ours:
        asking.run_coroutine(ask_in_background)
    wait_until(lambda: seconds_of_a_request(asking) < SLOW)
    forked_peers.suspend(forked_peers.family(hanging))
    wait_until(lambda: seconds_of_a_request(asking) > SLOW)  # it is known from now on
    slow = slow_requests(asking)
    assert slow == 0 if ours else slow >= 1


def test_no_request_waits_for_a_node_that_is_passed_over(make_dhts):
    dhts = make_dhts(4)
    asking, hanging = dhts[1], dhts[3]
    asking.run_coroutine(ask_in_background)
    wait_until(lambda: seconds_of_a_request(asking) < SLOW)
    peer = hanging.peer_id
    forked_peers.suspend(forked_peers.family(hanging))
    asking.run_coroutine(partial(pass_over, peer=peer))
    assert slow_requests(asking) == 0


@pytest.mark.parametrize("kind", [GroupKeyManager, UnhurriedKeys])
def test_who_declares_that_it_looks_for_a_group_waits_for_a_node_that_hangs_with_stock_only(make_dhts, kind):
    dhts = make_dhts(4)
    asking, hanging = dhts[1], dhts[3]
    wait_until(lambda: seconds_of_a_request(asking) < SLOW)
    keys = kind(asking, "run", "", None)
    forked_peers.suspend(forked_peers.family(hanging))
    begun = time.monotonic()
    asyncio.run(keys.declare_averager("run.0b", asking.peer_id, get_dht_time() + 60.0))
    took = time.monotonic() - begun
    assert took > SLOW if kind is GroupKeyManager else took < DECLARE_SECONDS + 1.0
