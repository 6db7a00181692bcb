"""Records that a stock peer may store to harm whoever reads them: against hivemind's own DHT, and against ours."""

import contextlib
import functools
import math
import signal
from concurrent.futures import TimeoutError as NotInTimeError

import hivemind
import msgpack
import pytest
from hivemind.dht import DHTID
from hivemind.dht.node import DictionaryDHTValue
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2PHandlerError
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.worker.connection.auth import guarded
from swarm_peers import wait_until
from unguarded import unguarded_again

KEY = "run_progress"
LATER = 60.0
ANSWER_SECONDS = 5.0
TUPLE = 0x40
UNDECODABLE = b"\xc1"
HONEST = MSGPackSerializer.dumps("mine")
WITH_MORE = HONEST + b"more"
"""As a signed value is; only peers of its run, which know of signatures, cut them off."""


def nested(levels):
    value = msgpack.packb([])
    for _ in range(levels):
        value = msgpack.packb(msgpack.ExtType(TUPLE, value))
    return value


BOMB = nested(280)


@pytest.fixture
def stock_again():
    with unguarded_again():
        yield


@pytest.fixture
def swarm(make_dhts, stock_again):
    """Start a node that is read from, ours or hivemind's, and two stock ones: an honest peer and a hostile one."""

    def make(ours):
        honest, hostile = make_dhts(2)
        seeds = [str(address) for address in honest.get_visible_maddrs()]
        with guarded(None) if ours else contextlib.nullcontext({}) as guard:
            reader = hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60, **guard)
        return reader, honest, hostile

    return make


def large():
    """A record that is made where it is sent: hivemind's DHT process ends by a request of more than 16 kB to it."""
    return MSGPackSerializer.dumps(b"x" * 20_000)


async def send(_dht, its_node, to, record):
    """Run in a stock node's process: ask the node `to` to store raw bytes. Returns whether it took them."""
    key, value, expires_in, tag = record
    request = dht_pb2.StoreRequest(
        keys=[DHTID.generate(source=key).to_bytes()],
        subkeys=[tag],
        values=[value() if callable(value) else value],
        expiration_time=[get_dht_time() + expires_in],
        in_cache=[False],
    )
    return list((await its_node.protocol.get_stub(to).rpc_store(request, timeout=ANSWER_SECONDS)).store_ok)


def put(sender, to, value, *, key=KEY, subkey="hostile", expires_in=LATER, tag=None):
    """Let a stock node ask another node to store raw bytes, or what `value` makes; returns whether that did."""
    tag = MSGPackSerializer.dumps(subkey) if tag is None else tag
    asked = functools.partial(send, to=to.peer_id, record=(key, value, expires_in, tag))
    with contextlib.suppress(P2PHandlerError):
        return sender.run_coroutine(asked, return_future=True).result(2 * ANSWER_SECONDS) == [True]
    return False


def store_honest(honest, reader, key=KEY):
    """An honest record under the same key, at the reader's node."""
    assert put(honest, reader, HONEST, key=key, subkey="honest")


def read(dht, key=KEY):
    """The subkeys and values under the key. Raises NotInTimeError."""
    found = dht.get(key, latest=True, return_future=True).result(ANSWER_SECONDS)
    return {subkey: each.value for subkey, each in found.value.items()} if found else {}


def test_1_4_kb_end_a_stock_reader(swarm):
    reader, honest, hostile = swarm(ours=False)
    assert len(BOMB) < 1400
    store_honest(honest, reader)
    assert put(hostile, reader, BOMB)
    reader.get(KEY, latest=True, return_future=True)
    wait_until(lambda: not reader.is_alive())
    assert reader.exitcode == -signal.SIGSEGV


def test_they_are_not_even_stored_by_ours(swarm):
    reader, honest, hostile = swarm(ours=True)
    store_honest(honest, reader)
    assert not put(hostile, reader, BOMB)
    assert read(reader) == {"honest": "mine"}


@pytest.mark.parametrize("value", [BOMB, UNDECODABLE, WITH_MORE], ids=["nested", "undecodable", "with more"])
def test_ours_reads_the_others_records_where_stock_nodes_keep_a_bad_one(swarm, value):
    reader, honest, hostile = swarm(ours=True)
    assert put(honest, hostile, HONEST, subkey="honest")
    assert put(hostile, honest, HONEST, subkey="honest")
    assert put(hostile, honest, value)
    assert put(honest, hostile, value)
    assert read(reader) == {"honest": "mine"}


def test_a_stock_reader_waits_without_end_for_a_value_that_cannot_be_decoded(swarm):
    reader, honest, hostile = swarm(ours=False)
    store_honest(honest, reader)
    assert put(hostile, reader, UNDECODABLE)
    with pytest.raises(NotInTimeError):
        read(reader)


HOSTILE = {
    "undecodable": {"value": UNDECODABLE},
    "large": {"value": large},
    "for ever": {"value": HONEST, "expires_in": math.inf},
    "for years": {"value": HONEST, "expires_in": 10 * 365 * 86_400.0},
    "until no number": {"value": HONEST, "expires_in": math.nan},
    "in place of all": {"value": HONEST, "tag": DHTProtocol.IS_REGULAR_VALUE, "expires_in": 2 * LATER},
    "under a number": {"value": HONEST, "subkey": 5},
    "under a long name": {"value": HONEST, "subkey": "x" * 3000},
}


def test_a_stock_node_stores_all_of_these(swarm):
    stock, honest, hostile = swarm(ours=False)
    for name, record in HOSTILE.items():
        store_honest(honest, stock, name)
        assert put(hostile, stock, key=name, **record), name


def test_ours_stores_none_of_them_and_keeps_the_honest_record(swarm):
    reader, honest, hostile = swarm(ours=True)
    for name, record in HOSTILE.items():
        store_honest(honest, reader, name)
        assert not put(hostile, reader, key=name, **record), name
        assert read(reader, name) == {"honest": "mine"}, name


async def flood(_dht, its_node, to, count):
    """Run in a stock node's process: ask the node `to` to store so many small records; returns how many it took."""
    request = dht_pb2.StoreRequest(
        keys=[DHTID.generate().to_bytes() for _ in range(count)],
        subkeys=[MSGPackSerializer.dumps("a")] * count,
        values=[HONEST] * count,
        expiration_time=[get_dht_time() + LATER] * count,
        in_cache=[False] * count,
    )
    return sum((await its_node.protocol.get_stub(to).rpc_store(request, timeout=ANSWER_SECONDS)).store_ok)


@pytest.mark.parametrize(("ours", "taken"), [(False, [1000, 1000, 1000]), (True, [1000, 900, 0])])
def test_a_flood_of_keys_fills_a_stock_node_and_ours_takes_some(swarm, ours, taken):
    reader, honest, hostile = swarm(ours=ours)
    asked = [functools.partial(flood, to=reader.peer_id, count=count) for count in (1000, 900, 1000)]
    if not ours:
        asked[1] = asked[0]
    assert [hostile.run_coroutine(each, return_future=True).result(2 * ANSWER_SECONDS) for each in asked] == taken
    store_honest(honest, reader)
    assert read(reader) == {"honest": "mine"}


async def ask(_dht, its_node, to, keys):
    """Run in a stock node's process: ask the node `to` for these keys; returns the number of answers."""
    request = dht_pb2.FindRequest(keys=[DHTID.generate(source=key).to_bytes() for key in keys])
    return len((await its_node.protocol.get_stub(to).rpc_find(request, timeout=ANSWER_SECONDS)).results)


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("keys", [[KEY, "another", KEY], range(257)], ids=["a key twice", "many keys"])
def test_a_question_with_a_long_answer_is_refused(swarm, ours, keys):
    reader, honest, hostile = swarm(ours=ours)

    def answers(keys):
        asked = functools.partial(ask, to=reader.peer_id, keys=[str(key) for key in keys])
        with contextlib.suppress(P2PHandlerError):
            return hostile.run_coroutine(asked, return_future=True).result(2 * ANSWER_SECONDS)
        return 0

    store_honest(honest, reader)
    assert answers(keys) == (0 if ours else len(keys))
    assert answers([KEY, "another"]) == 2


def test_a_whole_dictionary_is_stored_without_its_bad_records(swarm):
    reader, _, hostile = swarm(ours=True)
    records = DictionaryDHTValue()
    records.store("honest", HONEST, get_dht_time() + LATER)
    records.store("hostile", BOMB, get_dht_time() + LATER)
    records.store(5, MSGPackSerializer.dumps("other"), get_dht_time() + LATER)
    assert put(hostile, reader, MSGPackSerializer.dumps(records), tag=DHTProtocol.IS_DICTIONARY)
    assert read(reader) == {"honest": "mine"}
