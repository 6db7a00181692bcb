"""The order in which donors are asked for their state."""

import math

import pytest
from hivemind.p2p import PeerID

from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.state.choice import in_order

ANN, BOB, CLEO, DAN = (PeerID(bytes([0x12, 0x20, number]) + bytes(31)) for number in range(4))


def orders(offers, liars=(), newest=math.inf):
    """All orders of 200 questions."""
    values = {peer.to_bytes(): value for peer, value in offers.items()}
    return {tuple(in_order(values, liars, newest)) for _ in range(200)}


def test_whoever_claims_the_newest_state_is_not_always_the_first():
    found = orders({ANN: 100, BOB: 100.0, CLEO: 101, DAN: 105})
    assert {order[0] for order in found} == {ANN, BOB, CLEO, DAN}
    assert {order[0] for order in orders({ANN: 100, BOB: 100, CLEO: 101})} == {ANN, BOB, CLEO}


def test_older_states_come_later_the_newest_first():
    assert {order[2:] for order in orders({ANN: 90, BOB: 95, CLEO: 100, DAN: 99})} == {(BOB, ANN)}


def test_epochs_that_cannot_be_are_asked_for_last_and_liars_not_at_all():
    found = orders({ANN: 90, BOB: 10**9, CLEO: 100, DAN: 100}, liars={DAN}, newest=110)
    assert found == {(CLEO, ANN, BOB)}


def test_a_lone_donor_is_asked_whatever_it_claims():
    assert orders({ANN: 10**9}, newest=110) == {(ANN,)}
    assert orders({ANN: 5}, liars={ANN}) == {()}
    assert orders({}) == {()}


@pytest.mark.parametrize("value", ["100", math.nan, math.inf, None, b"100", -1, 2**53, 1e300])
def test_what_is_no_epoch_is_left_out(value):
    assert orders({ANN: value, BOB: 1}) == {(BOB,)}


@pytest.mark.parametrize("key", [5, "name", ("a",), b"[owner:ssh-rsa key]".ljust(LONGEST_ID + 1)])
def test_what_is_no_peers_id_is_left_out(key):
    assert in_order({key: 100, BOB.to_bytes(): 1}, ()) == [BOB]
