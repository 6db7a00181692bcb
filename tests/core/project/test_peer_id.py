from skep.core.project.addresses import base58, peer_id_of, protobuf_key, varint


def test_known_encodings():
    assert varint(300) == b"\xac\x02"
    assert base58(b"hello world") == "StV1DL6CwTryKyV"
    assert protobuf_key(b"key") == b"\x08\x00\x12\x03key"


def test_a_peer_id_is_a_base58_multihash_of_the_key():
    made = peer_id_of(b"k" * 294)
    assert made.startswith("Qm")
    assert len(made) == 46
    assert made != peer_id_of(b"l" * 294)
