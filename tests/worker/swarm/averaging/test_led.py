"""What is believed of a leader that says who is in its group, with hivemind's search for a group. No network."""

import asyncio
import time

import pytest
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from searches import searching
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.averaging.groups import EPOCH, GROUP_ID_BYTES
from skep.worker.swarm.averaging.search import BoundedSearch

OURS, LEADER, THIRD = PeerID(b"ours"), PeerID(b"leader"), PeerID(b"third")
FRIENDS = [PeerID(b"a friend"), PeerID(b"another one")]
GROUP = b"group".ljust(GROUP_ID_BYTES)


def claim(bandwidth=1.0, mode=0, data=None):
    return MSGPackSerializer.dumps([bandwidth, mode, MSGPackSerializer.dumps(data)])


OWN = claim(data={EPOCH: 5})
NEEDED = 3.0
"""Seconds of matchmaking and of a request: that long others may come."""
MEMBERS = [(LEADER, claim()), (OURS, OWN), (THIRD, claim())]


class Step:
    """Of a round that is expected in so many seconds, or was due so long ago."""

    data_for_gather = OWN

    def __init__(self, seconds=0.0):
        self.scheduled_time, self.triggered = get_dht_time() + seconds, seconds < 0


def led(members, kind=BoundedSearch, avoided=(), heard=(), waited=None):
    """The group that this peer believes to be in when its leader names these members and what they have said.

    `heard` as in `company`. The round has been due for `waited` seconds, or is not due yet.
    """

    async def scene():
        search = searching(OURS, kind, avoided=avoided, heard=heard)
        if waited is not None:
            search.look_for_group.__self__._due = time.monotonic() - waited
        return await follow(search, members)

    return asyncio.run(scene())


async def follow(search, members, seconds=0.0):
    message = averaging_pb2.MessageFromLeader(
        code=averaging_pb2.BEGIN_ALLREDUCE,
        group_id=GROUP,
        ordered_peer_ids=[peer.to_bytes() for peer, _ in members],
        gathered=[said for _, said in members],
    )
    search.current_leader, search.step_control = LEADER, Step(seconds)
    async with search.lock_looking_for_group, search.lock_request_join_group:
        return await search.follower_assemble_group(LEADER, message)


def test_a_leader_that_says_of_us_what_we_have_said_is_followed():
    found = led(MEMBERS)
    assert list(zip(found.peer_ids, found.gathered, strict=True)) == MEMBERS


FALSE = {
    "we average nothing": [(LEADER, claim()), (OURS, claim(0.0, data={EPOCH: 5}))],
    "we cannot be dialled": [(LEADER, claim()), (OURS, claim(mode=1, data={EPOCH: 5}))],
    "we only help": [(LEADER, claim()), (OURS, claim(mode=2, data={EPOCH: 5}))],
    "we bring another epoch": [(LEADER, claim()), (OURS, claim(data={EPOCH: 6}))],
    "it is no member": [(OURS, OWN), (THIRD, claim())],
    "it is two members": [(LEADER, claim()), (OURS, OWN), (LEADER, claim())],
    "one is no peer's id": [(LEADER, claim()), (OURS, OWN), (PeerID(bytes(LONGEST_ID + 1)), claim())],
}


@pytest.mark.parametrize("members", FALSE.values(), ids=FALSE)
def test_one_that_says_anything_else_is_not_and_stock_follows_it(members):
    assert led(members, kind=None).peer_ids == tuple(peer for peer, _ in members)
    assert led(members) is None


def test_nor_one_that_does_not_name_us():
    assert led([(LEADER, claim()), (THIRD, claim())]) is None


@pytest.mark.parametrize("avoided", [LEADER, THIRD])
def test_one_with_a_peer_that_is_avoided_is_followed_since_the_others_count_on_us(avoided):
    assert led(MEMBERS, avoided=[avoided]).peer_ids == (LEADER, OURS, THIRD)


def test_one_that_leads_only_strangers_is_not_followed_while_others_may_come():
    strangers = {"heard": [FRIENDS]}
    assert led(MEMBERS, **strangers) is None
    assert led(MEMBERS, **strangers, waited=0.0) is None
    assert led(MEMBERS, **strangers, waited=NEEDED - 1.1) is None
    assert led(MEMBERS, **strangers, waited=NEEDED) is not None


def test_one_like_us_may_have_begun_to_take_any_group_a_little_earlier():
    """Peers learn up to half the time of matchmaking later than others that a round is due."""
    assert led(MEMBERS, heard=[FRIENDS], waited=NEEDED - 0.9) is not None


def test_one_that_leads_half_of_those_of_the_last_round_is_followed():
    assert led(MEMBERS, heard=[[THIRD, FRIENDS[0]]]) is not None
    assert led(MEMBERS, heard=[[THIRD, *FRIENDS]]) is None
    assert led(MEMBERS, heard=[[THIRD, *FRIENDS], [THIRD]]) is not None


@pytest.mark.parametrize("members", [MEMBERS, FALSE["we average nothing"]], ids=["strangers", "a lie"])
def test_one_that_was_not_followed_is_not_asked_again_in_this_round(members):
    async def scene():
        search = searching(OURS, BoundedSearch, heard=[[LEADER, *FRIENDS]])
        left_out = await search.group_key_manager.find_left_out([])
        assert not left_out(LEADER)
        assert await follow(search, members[:2]) is None
        assert left_out(LEADER)

    asyncio.run(scene())


@pytest.mark.parametrize(("seconds", "followed"), [(1.1, False), (0.8, True), (-1.0, True)])
def test_one_whose_round_is_earlier_than_ours_has_to_lead_all_of_the_last_round(seconds, followed):
    async def scene(heard):
        return await follow(searching(OURS, BoundedSearch, heard=[heard]), MEMBERS, seconds)

    assert (asyncio.run(scene([LEADER, FRIENDS[0]])) is not None) == followed
    assert asyncio.run(scene([LEADER, THIRD])) is not None


def test_one_that_has_let_us_wait_leads_as_before_once_it_has_begun_a_group():
    async def scene():
        search = searching(OURS, BoundedSearch)
        search.look_for_group.__self__._let_wait(LEADER)
        search.look_for_group.__self__._spent.clear()  # as in the next round
        left_out = await search.group_key_manager.find_left_out([])
        assert left_out(LEADER)
        assert await follow(search, MEMBERS)
        assert not left_out(LEADER)

    asyncio.run(scene())
