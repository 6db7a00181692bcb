"""libp2p peer ids from public keys, so that the front ends need no hivemind. Pure.

Source: the libp2p specification "Peer IDs and Keys" (protobuf messages PrivateKey and PublicKey, sha2-256 multihash,
base58btc). Only RSA keys: hivemind makes no others.
"""

from __future__ import annotations

import hashlib
from typing import Final

BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def peer_id_of(der: bytes) -> str:
    """base58 peer id of an RSA public key in DER (SubjectPublicKeyInfo)."""
    return base58(multihash(protobuf_key(der)))


def protobuf_key(der: bytes) -> bytes:
    """A protobuf message {1: key type RSA (0), 2: data}."""
    return b"\x08\x00\x12" + varint(len(der)) + der


def varint(number: int) -> bytes:
    """Protobuf's variable-length integer."""
    parts = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def multihash(data: bytes) -> bytes:
    """sha2-256 as a multihash: code 0x12, length 32."""
    return b"\x12\x20" + hashlib.sha256(data).digest()


def base58(data: bytes) -> str:
    """base58btc. A multihash never begins with a zero byte, so there is no padding to keep."""
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        digits = BASE58[rest] + digits
    return digits
