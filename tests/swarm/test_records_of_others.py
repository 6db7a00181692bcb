"""Records that a stock peer stores under another's id: against hivemind's own DHT, and against ours with stock nodes in it."""

import contextlib
import functools

import hivemind
import pytest
from hivemind.dht import DHTID
from hivemind.dht.node import DictionaryDHTValue
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2PHandlerError
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.worker.connection import guards
from skep.worker.connection.auth import guarded
from skep.worker.connection.quotas import ANSWERED, ANSWERED_PER_SECOND
from skep.worker.connection.stored import OWN_BYTES
from swarm_peers import wait_until
from unguarded import unguarded_again

KEY = "run_grad_averager.0b"
SOON, LATE = 30.0, 600.0
"""Seconds: as an averager that searches for a group stores its record, and as a hostile peer does."""
ANSWER_SECONDS = 5.0


@pytest.fixture
def swarm(make_dhts, private_sockets):
    """Start a stock node, which is the hostile peer, and two others: stock ones or ours."""
    with unguarded_again(), contextlib.ExitStack() as ending:
        (hostile,) = make_dhts(1)
        seeds = [str(address) for address in hostile.get_visible_maddrs()]

        def enter(ours=True):
            with guarded(None) if ours else contextlib.nullcontext({}) as guard:
                made = hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60, **guard)
            ending.callback(made.shutdown)
            return made

        yield hostile, enter


def records(owner, value, seconds=LATE):
    """A dictionary of records of which this is one, as nodes hand them over."""
    found = DictionaryDHTValue()
    found.store(owner.peer_id.to_bytes(), MSGPackSerializer.dumps(value), get_dht_time() + seconds)
    found.store("other", MSGPackSerializer.dumps(value), get_dht_time() + seconds)
    return found


async def send(_dht, its_node, to, record):
    """Run in a node's process: ask the node `to` to store this; returns whether it did."""
    tag, value, seconds, cached = record
    request = dht_pb2.StoreRequest(
        keys=[DHTID.generate(source=KEY).to_bytes()],
        subkeys=[tag],
        values=[value],
        expiration_time=[get_dht_time() + seconds],
        in_cache=[cached],
    )
    return list((await its_node.protocol.get_stub(to).rpc_store(request, timeout=ANSWER_SECONDS)).store_ok)


def put(sender, to, tag, value, *, seconds=LATE, cached=False):
    asked = functools.partial(send, to=to.peer_id, record=(tag, value, seconds, cached))
    return sender.run_coroutine(asked, return_future=True).result(2 * ANSWER_SECONDS)


def forge(sender, to, owner, **how):
    """Say at `to` that `owner` searches for no group."""
    return put(sender, to, MSGPackSerializer.dumps(owner.peer_id.to_bytes()), MSGPackSerializer.dumps(False), **how)


def hand_over(sender, to, owner, **how):
    """The same as a neighbour hands over all records of a key."""
    return put(sender, to, DHTProtocol.IS_DICTIONARY, MSGPackSerializer.dumps(records(owner, value=False)), **how)


async def keep(_dht, its_node, forged):
    """Run in a stock node's process: have records in its storage."""
    for subkey, (value, until) in forged.items():
        its_node.protocol.storage.store_subkey(DHTID.generate(source=KEY), subkey, value, until)


def declare(owner, seconds=SOON):
    """As its averager does when it searches for a group."""
    until = get_dht_time() + seconds
    subkey = owner.peer_id.to_bytes()
    return owner.store(KEY, subkey=subkey, value=True, expiration_time=until, return_future=True).result(20)


def read(reader):
    """What each peer is said to do, by its id."""
    found = reader.get(KEY, latest=True, return_future=True).result(20)
    return {subkey: each.value for subkey, each in found.value.items()} if found else {}


def test_in_a_stock_swarm_a_forged_record_keeps_a_peer_out_of_all_groups(swarm):
    hostile, enter = swarm
    honest, other = enter(ours=False), enter(ours=False)
    assert forge(hostile, honest, honest) == forge(hostile, other, honest) == [True]
    declare(honest)
    assert read(other) == read(honest) == {honest.peer_id.to_bytes(): False}


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("way", [forge, hand_over])
def test_ours_takes_a_peers_record_from_that_peer_only(swarm, way, cached):
    hostile, enter = swarm
    honest, other = enter(), enter()
    others = {"other": False} if way is hand_over and not cached else {}
    for moment in ("before", "after"):
        if moment == "after":
            declare(honest)
        for node in (honest, other):
            assert way(hostile, node, honest, cached=cached) == [bool(others)]
    assert read(other) == read(honest) == {honest.peer_id.to_bytes(): True} | others


def test_what_a_peer_has_stored_here_counts_more_than_what_others_say_of_it(swarm):
    """A hostile or stock node answers a look-up, hands its records over when it meets a node, and gives them to caches."""
    hostile, enter = swarm
    honest, other = enter(), enter()
    hostile.run_coroutine(functools.partial(keep, forged=records(honest, value=False)), return_future=True).result(20)
    declare(honest)
    expected = {honest.peer_id.to_bytes(): True, "other": False}
    for _ in range(3):  # a look-up writes nothing of what it finds into the storage that the next one reads
        assert read(other) == read(honest) == expected
    late = enter()  # it is handed the hostile node's records while it joins, and stores none of its own there
    wait_until(lambda: read(late).get("other") is False)
    declare(honest)
    assert read(late) == read(other) == expected


def test_a_record_that_is_refused_for_a_later_one_does_not_end_it(swarm):
    hostile, enter = swarm
    honest = enter()
    tag, value = MSGPackSerializer.dumps("mine"), MSGPackSerializer.dumps(True)
    assert put(hostile, honest, tag, value, seconds=SOON) == [True]
    before = get_dht_time()
    assert put(hostile, honest, tag, value, seconds=1.0) == [False]
    wait_until(lambda: get_dht_time() > before + 1.5)
    assert read(hostile) == {"mine": True}  # it asks the node that stores it


async def fill(_dht, its_node, to, count):
    """Run in a stock node's process: ask the node `to` to store so many records of 15.5 kB under one key."""
    value = MSGPackSerializer.dumps(b"x" * 15_500)
    for number in range(count):
        request = dht_pb2.StoreRequest(
            keys=[DHTID.generate(source=KEY).to_bytes()],
            subkeys=[MSGPackSerializer.dumps(f"{number}")],
            values=[value],
            expiration_time=[get_dht_time() + LATE],
            in_cache=[False],
        )
        await its_node.protocol.get_stub(to).rpc_store(request, timeout=ANSWER_SECONDS)


async def hand_over_many(dht, its_node, to, count):
    """Run in a stock node's process: hand the node `to` so many records of 15.5 kB of one key over, as a neighbour does."""
    found = DictionaryDHTValue()
    for number in range(count):
        found.store(f"{number}", MSGPackSerializer.dumps(b"x" * 15_500), get_dht_time() + LATE)
    return await send(dht, its_node, to, (DHTProtocol.IS_DICTIONARY, MSGPackSerializer.dumps(found), LATE, False))


async def answer(_dht, its_node, to):
    """Run in a stock node's process: the subkeys that the node `to` says that the key has; None if it cannot answer."""
    key = DHTID.generate(source=KEY)
    found = await its_node.protocol.call_find(to, [key])
    return None if found is None else list(found[key][0].value.data)


@pytest.mark.parametrize("ours", [False, True])
def test_one_peer_cannot_fill_a_key_until_nobody_is_told_of_it(swarm, ours):
    hostile, enter = swarm
    honest = enter(ours=ours)
    declare(honest, LATE)  # till all is read, however slow the computer
    hostile.run_coroutine(functools.partial(fill, to=honest.peer_id, count=300), return_future=True).result(120)
    told = hostile.run_coroutine(functools.partial(answer, to=honest.peer_id), return_future=True).result(30)
    assert (told is not None and honest.peer_id.to_bytes() in told) == ours
    if ours:
        assert len(told) <= 1 + OWN_BYTES // 15_500


async def draw(_dht, its_node, to, times):
    """Run in a stock node's process: ask the node `to` so often for the key; returns how often that answered, and how much."""
    request, sizes = dht_pb2.FindRequest(keys=[DHTID.generate(source=KEY).to_bytes()]), []
    for _ in range(times):
        with contextlib.suppress(P2PHandlerError):
            sizes.append((await its_node.protocol.get_stub(to).rpc_find(request, timeout=ANSWER_SECONDS)).ByteSize())
    return len(sizes), sum(sizes)


@pytest.mark.parametrize("ours", [False, True])
def test_one_peer_cannot_draw_answers_without_end(swarm, ours):
    hostile, enter = swarm
    honest = enter(ours=ours)
    declare(honest, LATE)  # till all is read, however slow the computer
    handing = functools.partial(hand_over_many, to=honest.peer_id, count=30)
    assert hostile.run_coroutine(handing, return_future=True).result(120) == [True]
    begun = get_dht_time()
    asked = functools.partial(draw, to=honest.peer_id, times=40)
    times, size = hostile.run_coroutine(asked, return_future=True).result(120)
    allowed = ANSWERED + (get_dht_time() - begun) * ANSWERED_PER_SECOND + guards.LARGEST
    if ours:
        assert times < 40
        assert size < allowed
    else:
        assert times == 40
    assert read(enter(ours=ours))[honest.peer_id.to_bytes()] is True
