"""What is taken for averagers that search for a group: of the records under its key, and of a leader's answers. No network."""

import asyncio
import contextlib
import math
import time
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import ValueWithExpiration, get_dht_time

from searches import company, searching, told_nothing
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.connection.unresponsive import pass_over
from skep.worker.swarm.averaging.groups import Groups
from skep.worker.swarm.averaging.search import BoundedSearch, UnhurriedKeys

READY, LEFT = PeerID(b"\x12\x20" + bytes(32)), PeerID(b"\x12\x20" + bytes([1] * 32))
OURS = PeerID(b"ours")
STRANGER, FRIEND = PeerID(b"a stranger"), PeerID(b"a friend")
NEEDED = 3.0
"""Seconds of matchmaking and of a request: that long others may come."""
SIGNED = b"[owner:ssh-rsa key]".ljust(LONGEST_ID + 1)
RECORDS = {READY.to_bytes(): True, LEFT.to_bytes(): False, SIGNED: True, "text": True}
UNTIL = 5.0


def found(kind, *, records=RECORDS, only_active=True, avoided=()):
    answer = ValueWithExpiration({key: ValueWithExpiration(value, UNTIL) for key, value in records.items()}, UNTIL)

    async def get(key, *, latest, return_future):
        assert (key, latest, return_future) == ("run.0b", True, True)
        return answer if records else None

    keys = kind(SimpleNamespace(peer_id=READY, get=get), "run", "", None)
    keys.find_left_out = AsyncMock(return_value=avoided.__contains__)
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
    """In place of all leaders: takes a peer into its group, and the first one then sends it to another one.

    One that is `silent` ends the call instead.
    """

    def __init__(self, name=b"", *, silent=False):
        self.name, self.silent, self.asked, self.ended = name, silent, [], 0

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
            if self.silent:
                return
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
    asyncio.run(ask(monkeypatch, kind, leader))
    assert leader.asked == [READY, *others]
    assert leader.ended == len(leader.asked)  # as each call was when its group had ended


def test_whoever_is_named_and_avoided_is_not_asked(monkeypatch):
    leader = Leader(LEFT.to_bytes())
    asyncio.run(ask(monkeypatch, BoundedSearch, leader, avoided=[LEFT]))
    assert leader.asked == [READY]


async def ask(monkeypatch, kind, leader, **known):
    """A search that has asked READY once, in vain. `known` as in `searching`."""
    monkeypatch.setattr(DecentralizedAverager, "get_stub", leader.get_stub)
    search = searching(OURS, kind, client_mode=True, **known)
    search.step_control = Due()
    search.potential_leaders.declared_expiration_time = get_dht_time() + 2.0
    async with search.lock_looking_for_group:
        assert await search._request_join_group(READY) is None
    return search


def test_a_leader_that_lets_its_group_wait_is_not_asked_again_in_this_round(monkeypatch):
    async def scene():
        search = await ask(monkeypatch, BoundedSearch, Leader(silent=True))
        assert await is_left_out(search, READY)
        search = await ask(monkeypatch, BoundedSearch, Leader())
        assert not await is_left_out(search, READY)  # it has said that there is no group

    asyncio.run(scene())


@pytest.mark.parametrize(("silent", "passed_over"), [(True, [READY]), (False, [])])
def test_look_ups_do_not_wait_for_the_node_of_a_leader_that_lets_its_group_wait(monkeypatch, silent, passed_over):
    told = []

    def tell(coroutine, *, return_future):
        assert (coroutine.func, return_future) == (pass_over, True)
        told.append(coroutine.keywords["peer"])

    dht = SimpleNamespace(peer_id=OURS, num_workers=1, run_coroutine=tell)
    asyncio.run(ask(monkeypatch, BoundedSearch, Leader(silent=silent), dht=dht))
    assert told == passed_over


async def is_left_out(search, peer, found=(READY, LEFT)):
    return (await search.group_key_manager.find_left_out([OURS, *found]))(peer)


def test_nor_before_others_have_had_time_to_come_unless_others_follow_it(monkeypatch):
    async def scene():
        search = await ask(monkeypatch, BoundedSearch, Leader(silent=True))
        ours = search.look_for_group.__self__
        ours._spent.clear()  # as in the next round
        assert await is_left_out(search, READY)
        assert not ours._refuses(READY)
        ours._due = time.monotonic() - NEEDED
        assert not await is_left_out(search, READY)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("found", "seconds", "followers", "asked"),
    [
        ([READY], 0.0, [], True),
        ([READY, STRANGER], 0.0, [], True),
        ([READY, LEFT], 0.0, [], False),  # LEFT may lead as well
        ([READY], 0.0, [LEFT], False),  # LEFT follows us
        ([READY], 2.0, [], False),  # LEFT may come later
    ],
    ids=["alone", "beside a stranger", "beside another one", "with a follower", "early"],
)
def test_who_has_let_us_wait_is_asked_in_later_rounds_where_no_other_of_the_last_round_could_be(
    found, seconds, followers, asked
):
    async def scene():
        search = searching(OURS, BoundedSearch, heard=[[READY, LEFT]], others=[STRANGER])
        search.step_control, ours = Due(seconds), search.look_for_group.__self__
        search.current_followers = dict.fromkeys(followers)
        assert not await is_left_out(search, READY, found)
        ours._let_wait(READY)
        assert await is_left_out(search, READY, found)  # in this round
        ours._spent.clear()
        assert await is_left_out(search, READY, found) != asked
        assert await is_left_out(search, STRANGER, found)

    asyncio.run(scene())


def test_while_peers_of_the_last_round_may_come_no_stranger_leads():
    async def scene():
        search = searching(OURS, BoundedSearch, heard=[[READY]], others=[LEFT, STRANGER, FRIEND])
        assert await is_left_out(search, LEFT)
        assert not await is_left_out(search, READY)
        assert not await is_left_out(search, LEFT, found=[LEFT, STRANGER])  # they are more
        search.look_for_group.__self__._due = time.monotonic() - NEEDED
        assert not await is_left_out(search, LEFT)
        search.look_for_group.__self__._due = math.inf
        for seconds in (0.1 - NEEDED, -NEEDED):
            search.step_control = Due(seconds)
            assert await is_left_out(search, LEFT) == (seconds > -NEEDED)
        search = searching(OURS, BoundedSearch, heard=[[READY]], gone=[READY], others=[LEFT])
        assert not await is_left_out(search, LEFT)

    asyncio.run(scene())


class Found:
    """In place of the DHT: nobody else looks for a group."""

    peer_id, num_workers = OURS, 1
    run_coroutine = staticmethod(told_nothing)

    async def get(self, _key, **_options):
        return None

    async def store(self, *_given, **_options):
        return True


class Due:
    """A step, of a round that is expected in so many seconds, and will be due."""

    data_for_gather, deadline, triggered = b"", None, False

    def __init__(self, seconds=0.0):
        self.scheduled_time = get_dht_time() + seconds

    def get_timeout(self):
        return None

    async def wait_for_trigger(self):
        await asyncio.sleep(3600.0)


def follows(search, peer):
    """A call with which the peer joins the group of `search`; it has ended when this peer has said what becomes of it."""
    request = averaging_pb2.JoinRequest(
        schema_hash=search.schema_hash, expiration=get_dht_time() + 60.0, group_key="run.0b"
    )

    async def join():
        context = SimpleNamespace(remote_id=peer)
        return [message.code async for message in search.rpc_join_group(request, context)]

    return asyncio.create_task(join())


@pytest.mark.parametrize("kind", [None, BoundedSearch], ids=["stock", "ours"])
def test_a_group_with_strangers_alone_is_not_begun_while_others_may_come_and_stock_begins_it(kind):
    async def scene():
        search = searching(OURS, kind, heard=[[FRIEND]], dht=Found(), seconds=0.4)
        look = asyncio.create_task(search.look_for_group(Due()))
        await until(lambda: search.potential_leaders.declared_group_key)
        declared = search.potential_leaders.declared_expiration_time
        stranger = follows(search, STRANGER)
        codes = await asyncio.wait_for(stranger, 5.0)
        if kind is None:
            assert (await look).peer_ids in [(OURS, STRANGER), (STRANGER, OURS)]
            assert codes[-1] == averaging_pb2.BEGIN_ALLREDUCE
            return
        assert codes[-1] == averaging_pb2.GROUP_DISBANDED
        assert not look.done()
        await until(lambda: declared < search.potential_leaders.declared_expiration_time < math.inf)
        friend, stranger = follows(search, FRIEND), follows(search, STRANGER)
        assert set((await asyncio.wait_for(look, 5.0)).peer_ids) == {OURS, FRIEND, STRANGER}
        assert (await friend)[-1] == (await stranger)[-1] == averaging_pb2.BEGIN_ALLREDUCE

    asyncio.run(scene())


@pytest.mark.parametrize("hangs", [True, False])
def test_a_peer_alone_with_a_leader_that_let_it_wait_looks_on_only_if_that_answers(hangs):
    async def scene():
        search = searching(
            OURS, BoundedSearch, heard=[[READY]], hanging=[READY] if hangs else [], dht=Found(), seconds=0.8
        )
        ours, step = search.look_for_group.__self__, Due()
        step.wait_for_trigger = AsyncMock()
        await ours._company.meet([READY])
        look = asyncio.create_task(search.look_for_group(step))
        await until(lambda: ours._due < math.inf)
        ours._let_wait(READY)
        assert await asyncio.wait_for(look, 5.0) is None
        assert (time.monotonic() - ours._due < ours._needed) == hangs

    asyncio.run(scene())


def test_of_a_group_that_is_not_begun_nobody_is_left():
    async def scene():
        search = searching(OURS, BoundedSearch, heard=[[FRIEND]])
        search.step_control = Due()
        search.current_followers[STRANGER] = averaging_pb2.JoinRequest()
        async with search.lock_looking_for_group, search.lock_request_join_group:
            assert await search.leader_assemble_group() is None
        assert not search.current_followers

    asyncio.run(scene())


def test_leaders_are_asked_on_after_a_group_that_was_not_begun():
    async def scene():
        search = searching(OURS, None)
        search._request_join_potential_leaders = AsyncMock(side_effect=[None, None, "a group"])
        BoundedSearch(search, Groups(dict), company())
        assert await search._request_join_potential_leaders(Due()) == "a group"

    asyncio.run(scene())


def test_but_not_once_that_is_over():
    """hivemind returns when it is cancelled."""

    async def scene():
        search, calls = searching(OURS, None), []

        async def asked(_step):
            calls.append(None)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600.0)

        search._request_join_potential_leaders = asked
        BoundedSearch(search, Groups(dict), company())
        asking = asyncio.create_task(search._request_join_potential_leaders(Due()))
        await until(lambda: calls)
        asking.cancel()
        assert await asyncio.wait_for(asking, 5.0) is None
        assert len(calls) == 1

    asyncio.run(scene())


async def until(condition):
    async with asyncio.timeout(5.0):
        while not condition():  # noqa: ASYNC110 - hivemind has no event for it
            await asyncio.sleep(0.01)
