"""What is believed of a leader that says who is in its group, with hivemind's search for a group. No network."""

import asyncio

import pytest
from hivemind.averaging.matchmaking import MatchmakingException
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer

from searches import searching
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.averaging.groups import EPOCH, GROUP_ID_BYTES
from skep.worker.swarm.averaging.search import BoundedSearch

OURS, LEADER, THIRD = PeerID(b"ours"), PeerID(b"leader"), PeerID(b"third")
GROUP = b"group".ljust(GROUP_ID_BYTES)


def claim(bandwidth=1.0, mode=0, data=None):
    return MSGPackSerializer.dumps([bandwidth, mode, MSGPackSerializer.dumps(data)])


OWN = claim(data={EPOCH: 5})
MEMBERS = [(LEADER, claim()), (OURS, OWN), (THIRD, claim())]


class Step:
    data_for_gather = OWN


def led(members, kind=BoundedSearch, avoided=()):
    """The group that this peer believes to be in when its leader names these members and what they have said."""

    async def follow():
        search = searching(OURS, kind, avoided=avoided)
        message = averaging_pb2.MessageFromLeader(
            code=averaging_pb2.BEGIN_ALLREDUCE,
            group_id=GROUP,
            ordered_peer_ids=[peer.to_bytes() for peer, _ in members],
            gathered=[said for _, said in members],
        )
        search.current_leader, search.step_control = LEADER, Step()
        async with search.lock_looking_for_group, search.lock_request_join_group:
            return await search.follower_assemble_group(LEADER, message)

    return asyncio.run(follow())


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
    with pytest.raises(MatchmakingException):
        led(members)


def test_nor_one_that_does_not_name_us():
    with pytest.raises(MatchmakingException):
        led([(LEADER, claim()), (THIRD, claim())])


@pytest.mark.parametrize("avoided", [LEADER, THIRD])
def test_one_with_a_peer_that_is_avoided_is_followed_since_the_others_count_on_us(avoided):
    assert led(MEMBERS, avoided=[avoided]).peer_ids == (LEADER, OURS, THIRD)
