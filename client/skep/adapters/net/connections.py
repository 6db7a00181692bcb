"""Connections of downloads: the name of a server is resolved once, its addresses are judged, and one of them is dialled.

A name that resolves to another address a moment later (DNS rebinding) changes nothing. Through a proxy it is the proxy
that resolves names; then only the host in the address is judged, before the request.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import requests.adapters
import urllib3.exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.connection import allowed_gai_family, create_connection

from skep.core.errors import DataError
from skep.core.project.addresses import Reach, is_global
from skep.core.text import Text, sentences

TELL_PUBLISHER: Final = Text("web.tell_project_publisher")
OWN_NETWORK: Final = sentences(TELL_PUBLISHER, Text("web.own_network_add_file", setting="network.proxy"))
_SHOWN: Final = 60


def addresses_of(host: str, port: int) -> Sequence[str]:
    """The addresses that the system resolves `host` to, in the order in which to try them. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, allowed_gai_family(), socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


@dataclass(frozen=True)
class Network:
    """How names are resolved and addresses dialled. `dial` is as urllib3's `create_connection`."""

    look_up: Callable[[str, int], Sequence[str]] = addresses_of
    dial: Callable[..., socket.socket] = create_connection


INTERNET: Final = Network()


class Adapter(requests.adapters.HTTPAdapter):
    """Requests that are not made through a proxy connect to addresses within `reach` only.

    They raise DataError when the server's name resolves to others only.
    """

    def __init__(self, reach: Reach, network: Network) -> None:
        self._reach, self._network = reach, network
        super().__init__()

    def init_poolmanager(self, *given: Any, **more: Any) -> None:
        super().init_poolmanager(*given, **more)
        self.poolmanager.pool_classes_by_scheme = _pools(self._reach, self._network)


class _Connection(HTTPConnection):
    """The rest is urllib3's: TLS is for the server's name, and so is the header Host."""

    reach: ClassVar[Reach]
    network: ClassVar[Network]

    def _new_conn(self) -> socket.socket:
        """A socket to the first address of the server that answers. Raises DataError, and urllib3's errors."""
        # unlike `host`, it has the dot at the end of an absolute name
        name = self._dns_host
        try:
            found = self.network.look_up(name, self.port)
        except socket.gaierror as error:
            raise urllib3.exceptions.NameResolutionError(self.host, self, error) from error
        failure = OSError("no address")
        for address in _within(self.reach, self.host, found):
            try:
                return self.network.dial(
                    (address, self.port),
                    self.timeout,
                    source_address=self.source_address,
                    socket_options=self.socket_options,
                )
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise urllib3.exceptions.ConnectTimeoutError(self, str(failure)) from failure
        raise urllib3.exceptions.NewConnectionError(self, str(failure)) from failure


@functools.cache
def _pools(to: Reach, over: Network) -> dict[str, type[HTTPConnectionPool]]:
    """urllib3's pools by scheme, with connections that we open."""

    class Plain(_Connection):
        reach, network = to, over

    class Secure(_Connection, HTTPSConnection):
        reach, network = to, over

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _within(reach: Reach, host: str, found: Sequence[str]) -> Sequence[str]:
    """Those of the addresses that may be dialled. Raises DataError when there are others only."""
    if reach is Reach.ANY:
        return found
    fine = [address for address in found if is_global(ipaddress.ip_address(address))]
    if found and not fine:
        raise DataError(Text("web.name_not_internet", host=host[:_SHOWN], address=found[0]), OWN_NETWORK)
    return fine
