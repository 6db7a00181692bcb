"""Which records of others are accepted, and which of them are kept."""

from types import SimpleNamespace

import pytest
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.p2p import PeerID
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.worker.connection import guards, stored
from skep.worker.connection.guards import (
    LARGEST_RECORD,
    LONGEST_SECONDS,
    LONGEST_SUBKEY,
    LONGEST_UNSIGNED_SECONDS,
    RecordGuard,
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


def test_a_subkey_of_bytes_is_the_senders_id_or_has_a_key_that_signs():
    assert stored.belongs_to(PEER.to_bytes(), PEER)
    assert stored.belongs_to(SIGNED, PEER)
    assert stored.belongs_to("text", PEER)
    assert not stored.belongs_to(PeerID(b"another").to_bytes(), PEER)
    assert not stored.belongs_to(b"", PEER)
    assert not stored.belongs_to(5, PEER)


@pytest.mark.parametrize("part", ["value", "subkey"])
def test_what_takes_long_to_look_for_a_signature_in_is_refused_before(part):
    many = {"value": b"[signature:" * 1400, "subkey": b"[owner:" * 250}[part]
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
