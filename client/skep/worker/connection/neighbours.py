"""One place for each peer in this one's routing table of the DHT.

Stock behaviour that this corrects, covered by a test: a peer that says that it is ever new nodes gets a place for each,
until every request goes to it; and one that names another peer's node takes that one's place.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final
from weakref import WeakKeyDictionary

from hivemind.dht import DHTID
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import PeerID

CHANGE_SECONDS: Final = 10.0
"""A peer that starts anew has another node id, and so another place. It does so no more often."""
REMEMBERED: Final = 1_024
"""Peers that have changed theirs."""

_stock_update = DHTProtocol.update_routing_table
_changed: WeakKeyDictionary[DHTProtocol, OrderedDict[PeerID, float]] = WeakKeyDictionary()


async def _update(self: Any, node_id: DHTID | None, peer_id: PeerID, responded: bool = True) -> None:  # noqa: FBT001, FBT002 - hivemind's
    """In place of DHTProtocol.update_routing_table."""
    if node_id is not None and responded:
        table = self.routing_table
        if table.get(node_id=node_id, default=peer_id) != peer_id:
            return
        before = table.get(peer_id=peer_id, default=node_id)
        if before != node_id:
            if not _may_change(_changed.setdefault(self, OrderedDict()), peer_id):
                return
            del table[before]
    await _stock_update(self, node_id, peer_id, responded)


def _may_change(changed: OrderedDict[PeerID, float], peer: PeerID) -> bool:
    now = time.monotonic()
    if now - changed.get(peer, -CHANGE_SECONDS) < CHANGE_SECONDS:
        return False
    changed[peer] = now
    changed.move_to_end(peer)
    while len(changed) > REMEMBERED:
        changed.popitem(last=False)
    return True


def install() -> None:
    """Guard this process and its later forks. Called again, it changes nothing."""
    DHTProtocol.update_routing_table = _update
