"""Which records of others are accepted, and which of them are kept."""

import pytest
from hivemind.dht.validation import DHTRecord
from hivemind.p2p import PeerID
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.worker.connection import stored
from skep.worker.connection.guards import LONGEST_SECONDS, LONGEST_UNSIGNED_SECONDS, RecordGuard

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
