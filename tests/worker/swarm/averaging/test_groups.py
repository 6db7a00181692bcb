"""For which groups a part is awaited, taken or refused, and what is kept of it; who of the groupmates is lost."""

import asyncio
import contextlib
import math
from types import SimpleNamespace

import pytest
from hivemind.averaging.allreduce import AllreduceException
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.load_balancing import load_balance_peers
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer
from hivemind.utils.asyncio import as_aiter

from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.groups import (
    AVOIDED_BRIEFLY_SECONDS,
    AVOIDED_SECONDS,
    GROUP_ID_BYTES,
    KEPT,
    LONGEST_CLAIM,
    TRUSTED_ROUNDS,
    Company,
    Expected,
    Groups,
    is_credible,
)

PEER = "a peer"
WEIGHT = 3.0
STEP, OTHER = object(), object()
OURS, ANOTHER = b"ours".ljust(GROUP_ID_BYTES), b"another".ljust(GROUP_ID_BYTES)
SOON = 0.05
"""Seconds after which an unknown group is refused here."""
TAKEN, REFUSED = [averaging_pb2.AVERAGED_PART], [averaging_pb2.BAD_GROUP_ID]


class Group:
    """A running all-reduce that accepts every part."""

    def __init__(self):
        self.weights = []

    async def rpc_aggregate_part(self, stream, _context):
        async for part in stream:
            self.weights.append(part.weight)
            yield averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART, group_id=part.group_id)


@pytest.fixture
def averager():
    """One without its process, as it is after `__init__`."""
    made = object.__new__(CheckedGradientAverager)
    made.dht = SimpleNamespace(peer_id="this peer")
    made._admissions, made._running_groups = None, {}
    made._groups = Groups(lambda: made._running_groups, SOON)
    made._parent_pid = 0  # so that hivemind's destructor shuts nothing down
    return made


def claim(bandwidth=1.0, mode=0, data=None):
    return MSGPackSerializer.dumps([bandwidth, mode, MSGPackSerializer.dumps(data)])


CREDIBLE = [claim(), claim(None), claim(0), claim(0.01, mode=2), claim(data=[1, "a"])]
INCREDIBLE = [
    claim(1.01),
    claim(1e12),
    claim(-0.5),
    claim(math.inf),
    claim(math.nan),
    claim("x"),
    claim([1.0]),
    claim(mode=7),
    claim(data="a" * LONGEST_CLAIM),
    MSGPackSerializer.dumps([1.0, 0]),
    MSGPackSerializer.dumps([1.0, 0, "no bytes"]),
    MSGPackSerializer.dumps([1.0, 0, b"\xc1"]),
    MSGPackSerializer.dumps(None),
    b"",
    b"\xc1",
]


def test_who_claims_a_large_bandwidth_gets_the_whole_model_in_stock():
    assert load_balance_peers(1_000_000, [1.0, 1.0, 1e12]) == (0, 0, 1_000_000)


@pytest.mark.parametrize("said", CREDIBLE)
def test_what_peers_say_of_themselves_is_credible(said):
    assert is_credible(said)


@pytest.mark.parametrize("said", INCREDIBLE)
def test_who_says_what_cannot_be_true_is_neither_taken_into_a_group_nor_followed_into_one(averager, said):
    async def join():
        context = SimpleNamespace(remote_id=PEER)
        return [
            answer.code async for answer in averager.rpc_join_group(averaging_pb2.JoinRequest(gather=said), context)
        ]

    assert asyncio.run(join()) == [averaging_pb2.PROTOCOL_VIOLATION]
    led = GroupInfo(OURS, (averager.peer_id, PEER), (claim(), said))
    with pytest.raises(AllreduceException, match="a peer is in the group with claims that cannot be true"):
        asyncio.run(averager._check_group(led))


async def answers(averager, group_id):
    part = averaging_pb2.AveragingData(code=averaging_pb2.PART_FOR_AVERAGING, group_id=group_id, weight=WEIGHT)
    context = SimpleNamespace(remote_id=PEER)
    return [answer.code async for answer in averager.rpc_aggregate_part(as_aiter(part), context)]


def start(averager, group_id):
    averager._running_groups[group_id] = asyncio.Future()
    averager._running_groups[group_id].set_result(Group())
    averager._groups.tell()


def test_nothing_is_kept_for_groups_that_do_not_run(averager):
    async def flood():
        return await asyncio.gather(*(answers(averager, f"group {number}".encode()) for number in range(100)))

    assert asyncio.run(flood()) == [REFUSED] * 100
    assert not averager._groups._found
    assert not averager._groups._over


def test_what_a_groupmate_sends_is_not_lost_if_it_sends_before_the_group_is_known(averager):
    async def early():
        sent = asyncio.create_task(answers(averager, OURS))
        await asyncio.sleep(0)
        start(averager, OURS)
        return await sent

    assert asyncio.run(early()) == TAKEN
    assert averager._running_groups[OURS].result().weights == [WEIGHT]


def test_a_part_waits_for_a_group_that_was_found_however_late_the_round_is_due(averager):
    async def early():
        averager._groups.found(OURS, STEP)
        sent = asyncio.create_task(answers(averager, OURS))
        averager._groups.found(ANOTHER, OTHER)
        averager._groups.end_all(OTHER)
        await asyncio.sleep(4 * SOON)
        assert not sent.done()
        start(averager, OURS)
        return await sent

    assert asyncio.run(early()) == TAKEN


@pytest.mark.parametrize("group_id", [OURS, OURS + b"a phase of PowerSGD"])
def test_a_part_for_a_group_that_is_over_is_refused_at_once(averager, group_id):
    averager._groups = Groups(lambda: averager._running_groups, unknown_seconds=3600.0)

    async def late():
        averager._groups.found(OURS, STEP)
        waited = asyncio.create_task(answers(averager, group_id))
        await asyncio.sleep(0)
        averager._groups.end_all(STEP)
        return [await asyncio.wait_for(waited, 10), await asyncio.wait_for(answers(averager, group_id), 10)]

    assert asyncio.run(late()) == [REFUSED, REFUSED]


def test_a_part_that_was_let_through_is_not_held_by_a_group_whose_round_never_began(averager):
    """hivemind drops the future of such a group without a result."""

    async def scene():
        info = SimpleNamespace(group_id=OURS)
        averager._pending_groups_registered = asyncio.Event()
        with contextlib.suppress(RuntimeError), averager._register_allreduce_group(info):
            waited = asyncio.create_task(answers(averager, OURS))
            await asyncio.sleep(SOON)
            raise RuntimeError
        await asyncio.wait({waited}, timeout=10)
        assert waited.cancelled()
        return await answers(averager, OURS)

    assert asyncio.run(scene()) == REFUSED


def test_who_is_in_a_group_is_known_until_it_is_over():
    groups, step = Groups(dict), object()
    groups.found(b"one", step, ["a", "b"])
    groups.found(b"two", step, ["a", "c"])
    groups.end(b"one")
    assert [groups.has(peer) for peer in "abc"] == [True, False, True]
    groups.end_all(step)
    assert not groups.has("a")


def test_the_memory_of_groups_is_bounded():
    groups = Groups(dict)
    for number in range(10 * KEPT):
        groups.found(number.to_bytes(GROUP_ID_BYTES), STEP)
        groups.end_all(STEP)
    assert not groups._found
    assert len(groups._over) == KEPT


class Peers:
    """The peers that p2pd is connected to, and those that answer; asking one that can be dialled connects to it."""

    def __init__(self, connected=(), dialled=(), hanging=()):
        self.connected, self.dialled, self.hanging = set(connected), set(dialled), set(hanging)
        self.company = Company(self._connected, self._answers)

    async def _connected(self):
        return self.connected and set(self.connected)

    async def _answers(self, peer, _within):
        if self.connected is not None:
            self.connected |= {peer} & self.dialled
        return peer not in self.hanging


LONG = 0.2
"""Seconds after which nothing more is expected."""


async def is_lost(company, peer):
    loss = asyncio.create_task(company.until_lost(peer, 1.0))
    await asyncio.wait({loss}, timeout=LONG)
    loss.cancel()
    return loss.done() and not loss.cancelled()


def test_who_counts_as_lost():
    async def scene():
        peers = Peers(connected="abcd", hanging="d")
        await peers.company.meet("abcd")
        peers.connected, peers.dialled = {"a", "d"}, {"b"}
        assert not await is_lost(peers.company, "a")
        assert not await is_lost(peers.company, "b")  # its connection had been lost, and it can be dialled again
        assert await is_lost(peers.company, "c")
        assert await is_lost(peers.company, "d")
        assert not await is_lost(peers.company, "e")  # never seen connected: its own dial may still come

    asyncio.run(scene())


def test_nobody_is_lost_because_p2pd_does_not_say_who_is_connected():
    async def scene():
        peers = Peers(connected="a")
        await peers.company.meet("a")
        peers.connected = None
        assert not await is_lost(peers.company, "a")
        assert not await peers.company.is_gone()

    asyncio.run(scene())


def test_all_are_gone_only_if_there_were_any():
    async def scene():
        peers = Peers(connected="ab")
        assert not await peers.company.is_gone()
        await peers.company.meet("ab")
        assert not await peers.company.is_gone()
        peers.connected = {"b", "somebody else"}
        assert not await peers.company.is_gone()
        assert not await peers.company.is_gone(hanging={"a"})
        assert await peers.company.is_gone(hanging={"b"})
        peers.connected = {"somebody else"}
        assert await peers.company.is_gone()

    asyncio.run(scene())


def test_the_memory_of_groupmates_is_bounded():
    async def scene():
        peers = Peers(connected=range(2 * KEPT))
        for number in range(2 * KEPT):
            await peers.company.meet([number])
        assert peers.company.met == frozenset(range(KEPT, 2 * KEPT))

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("last", "looking", "expected", "known"),
    [
        ("", "ax", "ax", False),
        ("abc", "", "abc", True),
        ("abc", "ax", "abc", True),
        ("abc", "auvw", "abc", True),
        ("abc", "auvwx", "abcuvwx", False),
        ("a", "uv", "auv", False),
        ("abc", "au!?&", "abc", True),
        ("ab!", "uv", "ab", True),
        ("ab-", "uv", "ab", True),
        ("ab", "u-", "ab", True),
        ("!", "", "", True),
    ],
)
def test_who_should_be_in_the_next_group(last, looking, expected, known):
    """Letters are connected, and "-" is too, but avoided."""

    async def scene():
        company = Peers(connected="abcuvwx-").company
        company.hear("x" if last else "")
        company.hear(last)
        company.hear("")  # a round in which nobody was heard
        company.avoid("-")
        found = await company.expected(looking)
        assert (set(found.peers), found.known) == (set(expected), known)

    asyncio.run(scene())


def test_nobody_should_be_if_p2pd_does_not_say_who_is_connected():
    async def scene():
        company = Peers(connected="").company
        company.hear("a")
        assert not (await company.expected("b")).peers

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("members", "half", "whole"),
    [("", False, False), ("ax", False, False), ("abx", True, False), ("abc", True, False), ("abcdx", True, True)],
)
def test_a_group_has_to_have_half_or_all_of_those(members, half, whole):
    expected = Expected("abcd", known=True)
    assert expected.has_enough(members, all_of_them=False) == half
    assert expected.has_enough(members, all_of_them=True) == whole


def test_where_nobody_is_expected_any_group_will_do():
    assert Expected("", known=True).has_enough("x", all_of_them=True)


def test_who_has_delivered_its_data_is_trusted_for_some_rounds():
    company = Company(None, None)
    company.hear("a")
    for _ in range(TRUSTED_ROUNDS - 1):
        company.hear("b")
        company.hear("")
        assert company.trusts("a")
    company.hear("b")
    assert not company.trusts("a")
    assert company.trusts("b")


def test_who_is_avoided_briefly_is_so_no_shorter_if_it_is_avoided_for_longer():
    now = [0.0]
    company = Company(None, None, clock=lambda: now[0])
    company.avoid("a", briefly=True)
    company.avoid("b")
    company.avoid("b", briefly=True)
    now[0] = AVOIDED_BRIEFLY_SECONDS - 1
    assert company.avoids("a")
    now[0] = AVOIDED_BRIEFLY_SECONDS
    assert not company.avoids("a")
    assert company.avoids("b")
    now[0] = AVOIDED_SECONDS
    assert not company.avoids("b")


def test_who_has_harmed_a_round_is_avoided_for_a_time_and_few_are_remembered():
    now = [0.0]
    company = Company(None, None, clock=lambda: now[0])
    company.avoid("a")
    assert company.avoids("a")
    assert not company.avoids("b")
    now[0] = AVOIDED_SECONDS - 1
    assert company.avoids("a")
    company.avoid("a")
    now[0] += AVOIDED_SECONDS - 1
    assert company.avoids("a")
    now[0] += 1
    assert not company.avoids("a")
    for number in range(2 * KEPT):
        company.avoid(number)
    assert [company.avoids(number) for number in range(2 * KEPT)] == [False] * KEPT + [True] * KEPT
