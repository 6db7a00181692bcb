"""The multiaddresses of a host's seed peer, as a manifest must name them. Pure but for a look at the network interfaces.

It must not listen or dial.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Final

import psutil

from skep.core.errors import BadInput, ManifestError
from skep.core.project.addresses import is_peer_address
from skep.core.text import Text
from skep.host.server.folder import HostAddress

LOOPBACK: Final = "127.0.0.1"
_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)


def seed_addresses(address: HostAddress, peer_id: str) -> list[str]:
    """What a manifest's `peers` may hold to name this host: the announced address, or those of this computer.

    Raises BadInput when the announced address is none.
    """
    return [f"{announced}/p2p/{peer_id}" for announced in announced_addresses(address) or _own(address.port)]


def announced_addresses(address: HostAddress) -> list[str]:
    """The announced address as a multiaddress without peer id; none when nothing is announced. Raises BadInput."""
    if not address.announce:
        return []
    host, port = _split(address.announce, address.port)
    made = f"/{_kind(host)}/{host}/tcp/{port}"
    if not is_peer_address(f"{made}/p2p/Qm{'1' * 44}"):
        raise BadInput(
            Text("address.not_address_other_computers_could", announce=address.announce),
            Text("address.give_name_ip_address_port"),
        )
    return [made]


def _split(text: str, default_port: int) -> tuple[str, str]:
    """Host and port of HOST, HOST:PORT, an IPv6 address, or one in brackets with a port."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":") or str(default_port)
    host, colon, port = text.rpartition(":")
    if colon and ":" not in host and _PORT.fullmatch(port):
        return host, port
    return text, str(default_port)


def _kind(host: str) -> str:
    try:
        return f"ip{ipaddress.ip_address(host).version}"
    except ValueError:
        return "dns"


def _own(port: int) -> list[str]:
    """One for each IPv4 address of this computer, loopback only where there is no other."""
    found = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family == socket.AF_INET and not ipaddress.ip_address(entry.address).is_loopback
    ]
    return [f"/ip4/{host}/tcp/{port}" for host in found or [LOOPBACK]]


def check_named(peers: Sequence[str], address: HostAddress, peer_id: str) -> None:
    """Raise ManifestError unless one of the manifest's `peers` is this host's seed.

    An announced address must stand there as it is. Otherwise identity and port are compared: under which of its names
    the world knows this computer cannot be seen from here.
    """
    expected = seed_addresses(address, peer_id)
    ours = [peer for peer in peers if peer.endswith(f"/p2p/{peer_id}")]
    if address.announce:
        named = any(peer in expected for peer in ours)
    else:
        named = any(f"/tcp/{address.port}/" in peer for peer in ours)
    if not named:
        raise ManifestError(
            Text("address.manifest_peers_do_not_name"),
            Text("address.put_into_peers_sign_again", expected=expected[0]),
        )
