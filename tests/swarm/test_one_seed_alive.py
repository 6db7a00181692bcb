"""Joining needs one seed: of three, one is closed and at one another peer answers. Or else a peer met before."""

import pytest

from english import raises
from manifests import PEER
from skep.core.errors import SwarmError
from skep.worker.connection import network

NOBODY = PEER.rpartition("/")[2]
CLOSED = f"/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}"


def address_of(dht):
    return next(str(each) for each in dht.get_visible_maddrs() if "/127.0.0.1/" in str(each))


def another_at(address):
    return f"{address.rpartition('/')[0]}/{NOBODY}"


def test_one_of_three_seeds_is_enough(make_dhts, options):
    (seed,) = make_dhts(1)
    alive = address_of(seed)
    dht = network.reach(options, [CLOSED, another_at(alive), alive], known=pytest.fail)
    try:
        assert str(seed.peer_id) in dht.run_coroutine(known_peers)
    finally:
        dht.shutdown()


@pytest.mark.parametrize("what_answers", ["nothing", "another peer"])
def test_a_peer_met_before_is_enough(make_dhts, options, what_answers):
    (peer,) = make_dhts(1)
    alive = address_of(peer)
    seed = CLOSED if what_answers == "nothing" else another_at(alive)
    dht = network.reach(options, [seed], known=lambda: [CLOSED, alive])
    try:
        assert str(peer.peer_id) in dht.run_coroutine(known_peers)
    finally:
        dht.shutdown()


def test_when_neither_answers_the_seeds_are_named(make_dhts, options):
    (peer,) = make_dhts(1)
    for known in ([], [CLOSED.replace("tcp/1/", "tcp/2/")], [another_at(address_of(peer))]):
        with raises(SwarmError, match=r"None of the project's seed peers answers: 127\.0\.0\.1:1 refuses"):
            network.reach(options, [CLOSED], known=lambda known=known: known)


async def known_peers(_dht, node):
    return [str(each) for each in node.protocol.routing_table.uid_to_peer_id.values()]
