"""Which records of others are accepted, and which of them are kept."""

import time
from types import SimpleNamespace

import pytest
from hivemind.dht import DHTID
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.worker.connection import guards, stored
from skep.worker.connection.guards import (
    LARGEST_RECORD,
    LONGEST_SECONDS,
    LONGEST_SUBKEY,
    LONGEST_UNSIGNED_SECONDS,
    RecordGuard,
)
from skep.worker.connection.stored import (
    ALL_BYTES,
    HANDED_BYTES,
    KEY_BYTES,
    NEIGHBOUR_BYTES,
    OWN_BYTES,
    OWNER,
    RECORD_BYTES,
    SharedStorage,
)

ONE = MSGPackSerializer.dumps(1)
SIGNED = b"[owner:ssh-rsa key]"
PEER = PeerID(b"\x12\x20" + bytes(32))


def accepted(subkey, seconds, *, key=b"key", value=ONE):
    record = DHTRecord(key, MSGPackSerializer.dumps(subkey), value, get_dht_time() + seconds)
    return RecordGuard(lasting=b"invitations").validate(record)


@pytest.mark.parametrize(
    ("subkey", "longest"), [(PEER.to_bytes(), LONGEST_UNSIGNED_SECONDS), (SIGNED, LONGEST_SECONDS)]
)
def test_records_expire_in_time_and_unsigned_ones_soon(subkey, longest):
    assert accepted(subkey, longest - 5)
    assert not accepted(subkey, longest + 5)


def test_invitations_alone_last_for_years():
    years = 10 * 365 * 86_400.0
    assert accepted("peer", years, key=b"invitations")
    assert not accepted("peer", years)


def test_a_peers_id_under_which_a_record_is_stored_is_short():
    assert accepted(bytes(stored.LONGEST_ID), 5)
    assert not accepted(bytes(stored.LONGEST_ID + 1), 5)


def test_a_key_that_signs_is_no_longer_than_those_of_stock_peers():
    stock = RSASignatureValidator().local_public_key
    assert accepted(stock, 5)
    assert not accepted(stock + bytes(200), 5)


def test_a_subkey_of_bytes_is_the_senders_id_or_has_a_key_that_signs():
    assert stored.belongs_to(PEER.to_bytes(), PEER)
    assert stored.belongs_to(SIGNED, PEER)
    assert stored.belongs_to("text", PEER)
    assert not stored.belongs_to(PeerID(b"another").to_bytes(), PEER)
    assert not stored.belongs_to(b"", PEER)
    assert not stored.belongs_to(b"[owner:ssh-rsa key", PEER)
    assert not stored.belongs_to(b"[owner:\n]", PEER)
    assert not stored.belongs_to(b"[owner:]", PEER)
    assert not stored.belongs_to(5, PEER)


def test_beginnings_of_a_key_that_signs_take_no_time():
    begun = time.process_time()
    assert not stored.belongs_to(OWNER * 500_000, PEER)
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("part", ["value", "subkey"])
def test_what_takes_long_to_look_for_a_signature_in_is_refused_before(part):
    many = {"value": b"[signature:" * 1400, "subkey": b"[owner:" * 60}[part]
    assert len(many) < {"value": LARGEST_RECORD, "subkey": LONGEST_SUBKEY}[part]

    class Looking(RSASignatureValidator):
        def __init__(self):
            """Without a key."""

        def validate(self, record):
            pytest.fail(f"looked for a signature in {len(record.value)} bytes")

    guard = CompositeValidator([Looking(), RecordGuard()])
    value, subkey = (MSGPackSerializer.dumps(many if part == name else SIGNED) for name in ("value", "subkey"))
    assert not guard.validate(DHTRecord(b"key", subkey, value, get_dht_time() + 1))


def test_a_record_whose_check_raises_an_error_hides_no_other():
    def check(_key, _subkey, value, _until):
        if value != ONE:
            raise ValueError
        return True

    records = DictionaryDHTValue()
    records.store(b"bad", b"bad", get_dht_time() + 5)
    records.store(b"good", ONE, get_dht_time() + 5)
    assert guards._keep_valid(SimpleNamespace(serializer=MSGPackSerializer, _validate_record=check), b"key", records)
    assert set(records.data) == {b"good"}


class Node:
    """A node's storage, in which peers have records stored by name."""

    def __init__(self):
        self.storage = SharedStorage()

    def store(self, peer, key, subkey, value=ONE, seconds=60.0, until=None):
        asked = stored.writer.set(peer)
        try:
            name = DHTID.generate(source=key)
            return self.storage.store(name, value, until or get_dht_time() + seconds, subkey=subkey)
        finally:
            stored.writer.reset(asked)

    def under(self, key):
        found = self.storage.get(DHTID.generate(source=key))
        return dict(found.value.data) if found else {}


@pytest.fixture
def node():
    return Node()


LARGE = MSGPackSerializer.dumps(bytes(15_500))


def taken(records):
    return sum(len(subkey) + len(value) for subkey, (value, _) in records.items())


def test_a_peer_has_a_small_part_of_a_key_of_which_its_oldest_records_go(node):
    assert all(node.store(number, "key", f"{number}") for number in range(100))
    assert all(node.store("hostile", "key", f"large {number}", LARGE, 3000.0) for number in range(270))
    assert all(node.store(None, "key", f"ours {number}", LARGE) for number in range(3))
    found = node.under("key")
    assert found.keys() == {*map(str, range(100)), "large 269", *(f"ours {number}" for number in range(3))}


def test_a_peer_that_fills_a_key_of_many_takes_little_time(node):
    assert all(node.store(number, "key", f"{number}") for number in range(900))
    value, begun = MSGPackSerializer.dumps(bytes(1000)), time.process_time()
    assert all(node.store("hostile", "key", f"hostile {number}", value) for number in range(2000))
    assert time.process_time() - begun < 2.0
    assert len(node.under("key")) <= 900 + OWN_BYTES // 2000


def test_a_record_that_another_peer_replaces_is_that_peers(node):
    for number in range(100):
        assert node.store("one", "key", f"{number}", LARGE)
        assert node.store("another", "key", f"{number}", LARGE, 90.0)
    assert set(node.under("key")) == {"99"}


def test_a_neighbour_may_hand_over_records_of_many_peers_but_not_a_whole_key(node):
    neighbour = stored.Neighbour("neighbour")
    assert all(node.store(neighbour, "key", b"[owner:ssh-rsa %d]" % number) for number in range(400))
    assert len(node.under("key")) == 400
    assert all(node.store(neighbour, "key", b"[owner:ssh-rsa %d]" % number, LARGE) for number in range(400, 600))
    assert NEIGHBOUR_BYTES / 2 < taken(node.under("key")) <= NEIGHBOUR_BYTES
    assert node.store("neighbour", "key", "its own")


@pytest.mark.parametrize(
    ("tags", "expected"), [([b"name"], "peer"), ([b"name", DHTProtocol.IS_DICTIONARY], stored.Neighbour("peer"))]
)
def test_who_sends_whole_dictionaries_hands_over_others_records(tags, expected):
    assert stored.writer_of(dht_pb2.StoreRequest(subkeys=tags), "peer") == expected


def test_peers_that_fill_a_key_lose_their_oldest_records_and_others_none(node):
    assert node.store(None, "key", "ours", LARGE)
    assert all(node.store(number, "key", f"{number}") for number in range(100))
    assert all(node.store(f"hostile {number}", "key", f"large {number}", LARGE, 3000.0) for number in range(270))
    found = node.under("key")
    assert found.keys() >= {"ours", "large 269", *map(str, range(100))}
    assert "large 0" not in found
    assert KEY_BYTES / 2 < taken(found) <= KEY_BYTES
    assert len(MSGPackSerializer.dumps(node.storage.get(DHTID.generate(source="key")).value)) < guards.LARGEST
    assert node.store("late", "key", "late")


def test_a_key_that_many_peers_fill_keeps_the_records_that_are_renewed(node):
    for number in range(3000):
        if number % 100 == 0:
            assert node.store("honest", "key", "honest", seconds=60 + number)
        assert node.store(number, "key", f"{number}", seconds=3000.0)
    assert "honest" in node.under("key")
    assert len(node.under("key")) * RECORD_BYTES <= KEY_BYTES


def test_all_keys_together_are_bounded_too(node):
    assert node.store("honest", "honest", "honest")
    for number in range(4000):
        assert node.store(f"hostile {number % 2}", f"{number}", "large", LARGE, 3000.0)
    assert node.under("honest")
    kept = sum(taken(node.under(f"{number}")) for number in range(4000))
    assert ALL_BYTES / 2 < kept <= ALL_BYTES
    assert len(node.storage._writers) <= len(node.storage)


def test_what_has_expired_makes_room_first(node):
    now = get_dht_time()
    node.storage.store_subkey(DHTID.generate(source="key"), "short", LARGE, now + 0.2)
    assert all(node.store(f"{number}", "key", f"{number}", LARGE) for number in range(125))
    while get_dht_time() <= now + 0.2:
        pass
    assert node.store("last", "key", "last", LARGE)
    assert {"0", "last"} <= node.under("key").keys()


def test_a_record_that_is_stored_again_and_again_takes_no_more_memory(node):
    for number in range(2000):
        assert node.store("busy", "key", "mine", seconds=60 + number)
        assert not node.store("busy", "key", "mine", seconds=30)
    (records,) = (each.value for each in node.storage.data.values())
    assert len(records.expiration_heap) + len(node.storage.expiration_heap) < 200


def test_what_is_handed_to_a_new_node_fits_in_a_request_and_has_the_keys_of_most_peers(node):
    assert all(node.store("hostile", f"{number}", "large", LARGE) for number in range(500))
    assert all(node.store(number, "run", f"{number}") for number in range(5))
    handed = dict(node.storage.items())
    assert DHTID.generate(source="run") in handed
    size = sum(len(MSGPackSerializer.dumps(each.value)) for each in handed.values())
    assert HANDED_BYTES / 2 < size < guards.LARGEST


def test_keys_too_large_to_be_handed_over_keep_no_others_back(node):
    for peer in ("first", "second"):
        assert all(node.store(f"{peer} {number}", peer, f"{number}", LARGE) for number in range(110))
    assert node.store("honest", "run", "honest")
    assert DHTID.generate(source="run") in dict(node.storage.items())


def test_records_that_have_expired_count_for_nothing_of_what_is_handed_over(node):
    soon = get_dht_time() + 0.5
    for key in ("first", "second"):
        assert node.store("honest", key, "lasting")
        for number in range(1500):
            node.store(number, key, f"{number}", until=soon)
    for peer in ("one", "another"):
        assert all(node.store(peer, f"{peer} {number}", "lasting", LARGE) for number in range(60))
        assert node.store(peer, "run", peer)
    while get_dht_time() <= soon:
        pass
    handed = list(node.storage.items())
    keys = [key for key, _ in handed]
    assert keys[0] == DHTID.generate(source="run")  # two peers have records there, and one under each other key
    assert {DHTID.generate(source=key) for key in ("first", "second")} <= set(keys)
    assert all(each.value.data for _, each in handed)
