"""Where a home keeps what hosting needs: the server's identity and address, which must stay, and the checkpoints.

It must not know what is in a checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from skep.adapters.storage.atomic import atomic_write
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import StorageError
from skep.core.text import Text

DEFAULT_PORT: Final = 31337


@dataclass(frozen=True)
class HostAddress:
    """Where other peers reach the seed: its TCP port here, and HOST or HOST:PORT where the world sees another one."""

    port: int = DEFAULT_PORT
    announce: str = ""


@dataclass(frozen=True)
class HostFolder:
    root: Path

    @property
    def identity(self) -> FileIdentity:
        return FileIdentity(self.root / "seed.id")

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def log_file(self) -> Path:
        return self.root / "host.log"

    def checkpoints(self, run_id: str) -> Path:
        return self.root / "checkpoints" / run_id

    def create(self) -> None:
        """Raises StorageError."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None

    def address(self, port: int | None, announce: str | None) -> HostAddress:
        """The address kept from last time, with what is given now, which is kept from now on. Raises StorageError."""
        kept = self._kept()
        wanted = HostAddress(
            kept.port if port is None else port,
            kept.announce if announce is None else announce,
        )
        if wanted != kept:
            try:
                atomic_write(self._address_file, json.dumps(asdict(wanted)).encode())
            except OSError as error:
                raise self._unusable(error) from None
        return wanted

    @property
    def _address_file(self) -> Path:
        return self.root / "address.json"

    def _kept(self) -> HostAddress:
        try:
            body = json.loads(self._address_file.read_bytes())
            return HostAddress(int(body["port"]), str(body["announce"]))
        except FileNotFoundError:
            return HostAddress()
        except OSError as error:
            raise self._unusable(error) from None
        except (ValueError, KeyError, TypeError):
            raise StorageError(
                Text("folder.host_address_damaged", address_file=str(self._address_file)),
                Text("folder.remove_file_give_port_announce"),
            ) from None

    def _unusable(self, error: OSError) -> StorageError:
        return StorageError(
            Text("folder.folder_cannot_used", root=str(self.root), reason=str(error.strerror or error)),
            Text("folder.check_permissions_free_disk_space"),
        )
