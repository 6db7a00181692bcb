"""Web addresses, multiaddresses and libp2p peer ids as texts, and which of them are on the internet.

Pure; nothing is resolved.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
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


class Reach(Enum):
    """Which addresses downloads may reach."""

    GLOBAL = "global"
    """Those on the internet only."""
    ANY = "any"
    """Also this computer and its network."""


_LOCAL_NETWORKS: Final = tuple(
    ip_network(each)
    for each in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
    )
)
"""Loopback, private, link-local and shared addresses: RFC 1122, 1918, 3927, 6598, 4193, 4291."""
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")
"""Names that are never on the internet: RFC 6761, 6762, 8375; ICANN has reserved "internal"."""
_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0[xX][0-9A-Fa-f]*)")
"""A host that ends in a number. Libraries read it as IPv4, in spellings as 127.1, 0x7f000001 or 017700000001."""
_NAME: Final = re.compile(r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""What is given out of IPv6: RFC 4291."""
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
"""Each stands for an IPv4 address. Not in use any more: RFC 7526."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""Each stands for the IPv4 address in its last 32 bits: RFC 6052."""


def is_global(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is that of one computer on the internet.

    An IPv6 address that stands for an IPv4 address is judged as that one. Those of 6to4 and Teredo are refused.
    """
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is None:
            # ipaddress says of Teredo, 2001::/32, that it is not global; of 6to4 not every version does
            return address in _GLOBAL_UNICAST and address not in _SIX_TO_FOUR and address.is_global
        address = inner
    return address.is_global and not address.is_multicast


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a mapped address or one of NAT64 stands for."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def may_be_global(host: str) -> bool:
    """Whether a host of an address may be on the internet. A name still has to be resolved to know it."""
    host = host.lower().removesuffix(".")
    if ":" in host or _NUMBER.fullmatch(host):
        address = _literal(host)
        return address is not None and is_global(address)
    return bool(_NAME.fullmatch(host)) and not _is_local_name(host)


def is_local(host: str) -> bool:
    """Whether a host of an address is certainly on this computer or in its network.

    A host may be neither local nor global, so that an unusual spelling never makes one local.
    """
    host = host.lower().removesuffix(".")
    if ":" in host or _NUMBER.fullmatch(host):
        address = _literal(host)
        return address is not None and any(address in network for network in _LOCAL_NETWORKS)
    return bool(_NAME.fullmatch(host)) and _is_local_name(host)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """The address in its usual spelling, None for another spelling or with a zone ("%eth0")."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return None if "%" in host else address


def _is_local_name(host: str) -> bool:
    """Whether a name belongs to this computer or its network; one without a dot is completed by the system."""
    return "." not in host or host.endswith(_LOCAL_NAMES)


def reach_of(source: str) -> Reach:
    """What the downloads of a project may reach, by where its manifest came from: a path or a web address.

    A file was put there by the person. Only a manifest from this computer or its network may lead back there.
    """
    if "://" not in source:
        return Reach.ANY
    return Reach.ANY if is_local(web_host(source)) else Reach.GLOBAL


def web_host(address: str) -> str:
    """The host in a web address, in lower case; "" when there is none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


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
