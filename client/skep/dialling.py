"""Which addresses of peers are dialled, and whether they answer, for the worker and for the connection doctor."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

import psutil

from skep.core.project.addresses import host_of
from skep.core.text import NOTHING, Text

DIAL_SECONDS: Final = 5.0
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def dial_one(address: str, within: float = DIAL_SECONDS) -> Text:
    """Why the TCP address in a multiaddress does not answer, for the user; empty when it does or is not TCP."""
    match address.split("/"):
        case [_, _, host, "tcp", port, *_]:
            pass
        case _:
            return NOTHING
    try:
        with socket.create_connection((host, int(port)), within):
            return NOTHING
    except ConnectionRefusedError:
        return Text("swarm.refuses_connection")
    except TimeoutError:
        return Text("swarm.did_not_answer_within_s", dial_seconds=within)
    except (socket.gaierror, UnicodeError):  # the latter for a label that is too long for any name
        return Text("swarm.name_could_not_found")
    except OSError as error:
        return Text("swarm.cannot_reached", reason=str(error.strerror or error))


def endpoint(address: str) -> str:
    """host:port of a multiaddress, for messages."""
    match address.split("/"):
        case [_, _, host, _, port, *_]:
            return f"{host}:{port}"
        case _:
            return address


def own_networks() -> list[Network]:
    """The networks of this computer's own addresses."""
    found: list[Network] = []
    for each in (address for addresses in psutil.net_if_addrs().values() for address in addresses):
        with contextlib.suppress(ValueError):
            interface = ipaddress.ip_interface(f"{each.address.partition('%')[0]}/{each.netmask or ''}".rstrip("/"))
            found.append(interface.network)
    return found


def may_be_dialled(address: str, ours: Sequence[Network]) -> bool:
    """Whether it is public, a name, or in one of our own networks: a private address of another network is elsewhere
    another computer's.
    """
    try:
        host = ipaddress.ip_address(host_of(address))
    except ValueError:
        return True
    return host.is_global or any(host in network for network in ours)
