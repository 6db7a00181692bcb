"""Peers with which rounds were confirmed, kept in a file of this run: through them a join works while no seed answers.

A peer's address is the one that our own connection to it has, and only if something that speaks libp2p answers there: no
peer can make us dial a third one. The coroutine runs in the DHT's process, which has to be forked after this module was
imported.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import hivemind
import msgspec
from hivemind.utils import get_logger

from skep.core.project.addresses import is_peer_address
from skep.core.project.met_peers import MOST, OLDEST, READ_AT_MOST, Known, file_name, met
from skep.dialling import Network, may_be_dialled, own_networks
from skep.files import replacing
from skep.worker.connection.reachability import DIAL_SECONDS, answering, connected

LOOK_SECONDS: Final = 60.0
"""At least, between two looks at the addresses of peers."""
WITHIN: Final = DIAL_SECONDS + 5.0
"""How long a look may take."""

logger = get_logger(__name__)
Where = Callable[[Sequence[str]], Sequence[str]]


@dataclass
class KnownPeers:
    """Those of the run `run_id`, in a file of `folder`. `clock` is wall clock, `networks` as `own_networks`."""

    folder: Path
    run_id: str
    clock: Callable[[], float] = time.time
    networks: Callable[[], Sequence[Network]] = own_networks
    _looking: threading.Thread | None = None
    _looked: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def file(self) -> Path:
        return self.folder / file_name(self.run_id)

    def addresses(self) -> list[str]:
        """Those that can be tried now, the one met last first. A file that cannot be read has none."""
        with contextlib.suppress(OSError):
            self._forget()
        ours = self.networks()
        return [each.address for each in self._read() if may_be_dialled(each.address, ours)]

    def meet(self, peers: Sequence[str], where: Where) -> None:
        """A round with `peers` (base58 ids) was confirmed: keep the addresses that `where` finds, in another thread.

        Most calls do nothing, since a look was taken lately.
        """
        with self._lock:
            if time.monotonic() - self._looked < LOOK_SECONDS or (self._looking and self._looking.is_alive()):
                return
            self._looked = time.monotonic()
            self._looking = threading.Thread(target=self._look, args=(peers, where), name="known peers", daemon=True)
            self._looking.start()

    def _look(self, peers: Sequence[str], where: Where) -> None:
        try:
            found = where(peers)
        except Exception as error:  # noqa: BLE001 - whatever p2pd says, or that it has ended: others watch it
            logger.warning("the addresses of other peers are not known: %r", error)
            return
        try:
            self.keep(found)
        except OSError as error:
            logger.warning("the addresses of other peers cannot be kept: %s", error)

    def keep(self, addresses: Iterable[str]) -> None:
        """Add peers met now. Raises OSError."""
        seen: Mapping[str, Known] = {
            known.peer: known for known in (Known(each, self.clock()) for each in addresses if is_peer_address(each))
        }
        if not seen:
            return
        others = [each for each in self._read() if each.peer not in seen]
        kept = [*seen.values(), *others][:MOST]
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(self.file) as temporary:
            temporary.write_bytes(msgspec.json.encode(kept))

    def _read(self) -> list[Known]:
        """As `met`; nothing of a file that cannot be read: the next `keep` replaces it."""
        try:
            with self.file.open("rb") as file:
                return met(file.read(READ_AT_MOST), self.clock())
        except OSError:
            return []

    def _forget(self) -> None:
        """Remove other runs' files that are too old. Raises OSError."""
        for other in self.folder.glob("*.json"):
            if other != self.file and self.clock() - other.stat().st_mtime > OLDEST:
                other.unlink()


def where(dht: hivemind.DHT) -> Where:
    """Finds the addresses at which peers that `dht` is connected to can be dialled."""

    def found(peers: Sequence[str]) -> Sequence[str]:
        look = dht.run_coroutine(partial(_where, peers=tuple(peers)), return_future=True)
        return tuple(look.result(WITHIN))

    return found


async def _where(_dht: hivemind.DHT, node: Any, *, peers: Sequence[str]) -> list[str]:
    found = {each for each in await connected(node.p2p) if each.rpartition("/")[2] in peers and is_peer_address(each)}
    return await answering(sorted(found))
