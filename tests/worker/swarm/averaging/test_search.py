"""Which records under the key of a group are averagers that search for one. No network."""

import asyncio
from types import SimpleNamespace

from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration

from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.averaging.search import UnhurriedKeys

READY, LEFT = PeerID(b"\x12\x20" + bytes(32)), PeerID(b"\x12\x20" + bytes([1] * 32))
SIGNED = b"[owner:ssh-rsa key]".ljust(LONGEST_ID + 1)
RECORDS = {READY.to_bytes(): True, LEFT.to_bytes(): False, SIGNED: True, "text": True}
UNTIL = 5.0


def found(kind, *, records=RECORDS, only_active=True):
    answer = ValueWithExpiration({key: ValueWithExpiration(value, UNTIL) for key, value in records.items()}, UNTIL)

    async def get(key, *, latest, return_future):
        assert (key, latest, return_future) == ("run.0b", True, True)
        return answer if records else None

    keys = kind(SimpleNamespace(peer_id=READY, get=get), "run", "", None)
    return asyncio.run(keys.get_averagers("run.0b", only_active))


def test_what_can_be_no_peers_id_is_left_out_and_stock_makes_it_one():
    assert (PeerID(SIGNED), UNTIL) in found(GroupKeyManager)
    assert found(UnhurriedKeys) == [(READY, UNTIL)]
    assert found(UnhurriedKeys, only_active=False) == [(READY, UNTIL), (LEFT, UNTIL)]


def test_where_nobody_has_searched_nobody_is_found():
    assert found(UnhurriedKeys, records={}) == []
