"""The folder of a home's host, and the addresses of its seed peer for a manifest.

Identity and address stay the same from one start to the next.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import psutil

from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import Below
from skep.core.errors import BadInput, ManifestError, StorageError
from skep.core.project.addresses import is_peer_address
from skep.core.text import Text

DEFAULT_PORT: Final = 31337
LOOPBACK: Final = "127.0.0.1"
_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)


@dataclass(frozen=True)
class HostAddress:
    """The seed's address for other peers: its TCP port here, and HOST or HOST:PORT if it has another one publicly."""

    port: int
    announce: str = ""


@dataclass(frozen=True)
class HostFolder:
    root: Path

    lock_file = Below("lock")
    log_file = Below("host.log")
    _address_file = Below("address.json")

    @property
    def identity(self) -> FileIdentity:
        return FileIdentity(self.root / "seed.id")

    def checkpoints(self, run_id: str) -> Path:
        return self.root / "checkpoints" / run_id

    def create(self) -> None:
        """Raises StorageError."""
        with self._errors():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def address(self, port: int | None, announce: str | None) -> HostAddress:
        """The stored address, updated and stored with the given values. Raises StorageError."""
        kept = self._kept()
        wanted = HostAddress(
            kept.port if port is None else port,
            kept.announce if announce is None else announce,
        )
        if wanted != kept:
            with self._errors():
                atomic_write(self._address_file, msgspec.json.encode(wanted))
        return wanted

    def _kept(self) -> HostAddress:
        with self._errors():
            try:
                return msgspec.json.decode(self._address_file.read_bytes(), type=HostAddress)
            except FileNotFoundError:
                return HostAddress(DEFAULT_PORT)
            except ValueError:
                raise StorageError(
                    Text("folder.host_address_damaged", address_file=str(self._address_file)),
                    Text("folder.remove_file_give_port_announce"),
                ) from None

    def _errors(self) -> AbstractContextManager[None]:
        return os_errors(
            Text("folder.folder_cannot_used", root=str(self.root)), Text("folder.check_permissions_free_disk_space")
        )


# --- addresses


def seed_addresses(address: HostAddress, peer_id: str) -> list[str]:
    """Addresses of this host for a manifest's `peers`: the announced address, or those of this computer.

    Raises BadInput if the announced address is invalid.
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
    """One for each IPv4 address of this computer, loopback only if there is no other."""
    found = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family == socket.AF_INET and not ipaddress.ip_address(entry.address).is_loopback
    ]
    return [f"/ip4/{host}/tcp/{port}" for host in found or [LOOPBACK]]


def check_named(peers: Sequence[str], address: HostAddress, peer_id: str) -> None:
    """Raise ManifestError unless one of the manifest's `peers` is this host's seed.

    An announced address must be listed unchanged. Otherwise identity and port are compared, since this computer's
    public name is unknown here.
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
