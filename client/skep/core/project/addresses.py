"""Web addresses, multiaddresses and libp2p peer ids as texts. Pure; nothing is resolved."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_PRINTABLE: Final = re.compile(r"[!-~]+")
_PEER_ID: Final = re.compile(
    r"(Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3KooW[1-9A-HJ-NP-Za-km-z]{44}|16Uiu2HA[1-9A-HJ-NP-Za-km-z]{45})"
)
_HOST_NAME: Final = re.compile(r"[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?(\.[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?)*")
_LARGEST_PORT: Final = 65535
TRANSPORTS: Final = frozenset({"quic", "quic-v1", "tls", "ws", "wss"})
"""Transports allowed between port and peer id: those that a seed can listen on and hivemind can parse."""


def is_web_address(text: str) -> bool:
    # libraries parse a backslash or an @ differently, which could hide the real host
    if not _PRINTABLE.fullmatch(text) or "\\" in text or "@" in text:
        return False
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def beside(address: str, name: str) -> str:
    """The web address of the file `name` in the folder of `address`, whose query and fragment are dropped."""
    parts = urlsplit(address)
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{name}", "", ""))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(address: str) -> str:
    """The host in a multiaddress; "" when there is none."""
    return "".join(address.split("/")[2:3])


def is_peer_address(text: str) -> bool:
    match text.split("/"):
        case ["", kind, host, "tcp" | "udp", port, *between, "p2p", peer_id]:
            fine = _is_host(kind, host) and _is_port(port) and TRANSPORTS.issuperset(between)
            return fine and bool(_PEER_ID.fullmatch(peer_id))
        case _:
            return False


def _is_host(kind: str, host: str) -> bool:
    try:
        match kind:
            case "ip4":
                return bool(ipaddress.IPv4Address(host))
            case "ip6":
                # a zone ("%eth0") is valid on one computer only, and may contain any character
                return "%" not in host and bool(ipaddress.IPv6Address(host))
            case "dns" | "dns4" | "dns6":
                return bool(_HOST_NAME.fullmatch(host))
            case _:
                return False
    except ValueError:
        return False


def _is_port(text: str) -> bool:
    # a port has at most five digits
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= _LARGEST_PORT  # noqa: PLR2004


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
    """`data` in base58btc. A multihash never begins with a zero byte, so no leading zeros are encoded."""
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        digits = BASE58[rest] + digits
    return digits
