"""What is taken for averagers that search for a group: of the records under its key, and of a leader's answers. No network."""

import asyncio
from types import SimpleNamespace

import pytest
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import ValueWithExpiration, get_dht_time

from searches import searching
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.averaging.search import BoundedSearch, UnhurriedKeys

READY, LEFT = PeerID(b"\x12\x20" + bytes(32)), PeerID(b"\x12\x20" + bytes([1] * 32))
OURS = PeerID(b"ours")
SIGNED = b"[owner:ssh-rsa key]".ljust(LONGEST_ID + 1)
RECORDS = {READY.to_bytes(): True, LEFT.to_bytes(): False, SIGNED: True, "text": True}
UNTIL = 5.0


def found(kind, *, records=RECORDS, only_active=True, avoided=()):
    answer = ValueWithExpiration({key: ValueWithExpiration(value, UNTIL) for key, value in records.items()}, UNTIL)

    async def get(key, *, latest, return_future):
        assert (key, latest, return_future) == ("run.0b", True, True)
        return answer if records else None

    keys = kind(SimpleNamespace(peer_id=READY, get=get), "run", "", None)
    keys.avoids = avoided.__contains__
    return asyncio.run(keys.get_averagers("run.0b", only_active))


def test_what_can_be_no_peers_id_is_left_out_and_stock_makes_it_one():
    assert (PeerID(SIGNED), UNTIL) in found(GroupKeyManager)
    assert found(UnhurriedKeys) == [(READY, UNTIL)]
    assert found(UnhurriedKeys, only_active=False) == [(READY, UNTIL), (LEFT, UNTIL)]


def test_who_has_harmed_a_round_is_not_found_and_stock_finds_it():
    assert (READY, UNTIL) in found(GroupKeyManager, avoided=[READY])
    assert found(UnhurriedKeys, only_active=False, avoided=[READY]) == [(LEFT, UNTIL)]


def test_where_nobody_has_searched_nobody_is_found():
    assert found(UnhurriedKeys, records={}) == []


class Leader:
    """In place of all leaders: takes a peer into its group, and the first one then sends it to another one."""

    def __init__(self, name):
        self.name, self.asked, self.ended = name, [], 0

    def get_stub(self, _p2p, leader, *, namespace):
        assert namespace == "run"
        self.asked.append(leader)
        return self

    async def rpc_join_group(self, request):
        assert request.group_key == "run.0b"
        return self._answers()

    async def _answers(self):
        try:
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.ACCEPTED)
            name = self.name if len(self.asked) == 1 else b""
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.GROUP_DISBANDED, suggested_leader=name)
            pytest.fail("more was read than the end of the group")
        finally:
            self.ended += 1


@pytest.mark.parametrize(
    ("kind", "name", "others"),
    [(None, SIGNED, [PeerID(SIGNED)]), (BoundedSearch, SIGNED, []), (BoundedSearch, LEFT.to_bytes(), [LEFT])],
    ids=["stock", "ours", "a peer"],
)
def test_whoever_is_named_by_what_can_be_no_peers_id_is_not_asked_and_stock_asks_it(monkeypatch, kind, name, others):
    leader = Leader(name)
    monkeypatch.setattr(DecentralizedAverager, "get_stub", leader.get_stub)

    async def ask():
        search = searching(OURS, kind, client_mode=True)
        search.step_control = SimpleNamespace(data_for_gather=b"")
        search.potential_leaders.declared_expiration_time = get_dht_time() + 2.0
        async with search.lock_looking_for_group:
            assert await search._request_join_group(READY) is None

    asyncio.run(ask())
    assert leader.asked == [READY, *others]
    assert leader.ended == len(leader.asked)  # as each call was when its group had ended
