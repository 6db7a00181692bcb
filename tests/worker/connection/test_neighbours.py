"""A peer has one place in another's routing table, whatever node it says that it is."""

import asyncio
from types import SimpleNamespace

import pytest
from hivemind.dht import DHTID
from hivemind.dht.routing import RoutingTable
from hivemind.p2p import PeerID

from skep.worker.connection import neighbours

PEER, OTHER = PeerID(b"peer"), PeerID(b"other")


class Node(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.fixture
def node():
    return Node(node_id=DHTID.generate(), storage={}, routing_table=RoutingTable(DHTID.generate(), 20, 5))


@pytest.fixture
def time(monkeypatch):
    now = SimpleNamespace(now=0.0)
    monkeypatch.setattr(neighbours.time, "monotonic", lambda: now.now)
    return now


def introduce(node, *nodes, peer=PEER, update=neighbours._update):
    async def all_of_them():
        for each in nodes:
            await update(node, each, peer)

    asyncio.run(all_of_them())


def places(node):
    return node.routing_table.uid_to_peer_id


def test_invented_nodes_of_a_peer_take_a_place_each_in_stock_and_one_here(node, time):
    ids = [DHTID.generate() for _ in range(15)]
    introduce(node, *ids, update=neighbours._stock_update)
    assert len(places(node)) == 15
    node.routing_table = RoutingTable(DHTID.generate(), 20, 5)
    introduce(node, *ids)
    assert places(node) == {ids[1]: PEER}


def test_a_peer_that_starts_anew_has_its_new_place_and_may_start_anew_again_later(node, time):
    first, second, third = (DHTID.generate() for _ in range(3))
    introduce(node, first, second)
    assert places(node) == {second: PEER}
    introduce(node, third)
    assert places(node) == {second: PEER}
    time.now += neighbours.CHANGE_SECONDS
    introduce(node, third)
    assert places(node) == {third: PEER}


def test_the_place_of_another_peer_is_not_taken(node, time):
    place = DHTID.generate()
    introduce(node, place, update=neighbours._stock_update, peer=PEER)
    introduce(node, place, update=neighbours._stock_update, peer=OTHER)
    assert places(node) == {place: OTHER}
    introduce(node, place)
    assert places(node) == {place: OTHER}


def test_only_so_many_changes_are_remembered(node, time, monkeypatch):
    monkeypatch.setattr(neighbours, "REMEMBERED", 3)
    for number in range(5):
        introduce(node, DHTID.generate(), DHTID.generate(), peer=PeerID(str(number).encode()))
    assert len(neighbours._changed[node]) == 3
