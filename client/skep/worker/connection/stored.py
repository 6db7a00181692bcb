"""What this peer's part of the DHT keeps of others' records: each peer's own ones.

Stock behaviour that this corrects, each covered by a test:
- anybody may store a record under another peer's id, and one that lasts longer keeps that peer's own ones out: then no
  group is found for a round, and no donor of the state;
- what a node was given for its cache hides what it stores, if it lasts longer;
- a record that is refused because a later one is there ends that one at its own, earlier end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from hivemind.dht import DHTID, protocol
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.storage import DHTLocalStorage, DictionaryDHTValue
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer

OWNER: Final = b"[owner:"
"""With this, and a key, begins a subkey whose records hivemind signs."""
MOST_DICTIONARY: Final = 2 * 1024 * 1024
"""Bytes of all records of a key that are handed over at once."""


def belongs_to(subkey: object, peer: PeerID) -> bool:
    """Whether the peer may store a record under the subkey.

    hivemind's subkeys of bytes are peers' ids and peers' public keys, under which records are signed.
    """
    return isinstance(subkey, str) or (isinstance(subkey, bytes) and (OWNER in subkey or subkey == peer.to_bytes()))


@dataclass(frozen=True)
class Separate:
    """A request to store, with each record by itself."""

    request: dht_pb2.StoreRequest
    counts: list[int]
    """How many records there are of each entry of the original."""

    def answers(self, taken: Iterable[bool]) -> list[bool]:
        """Whether at least one record of each original entry was taken."""
        each = iter(taken)
        return [any(list(islice(each, count))) for count in self.counts]


def separate(request: dht_pb2.StoreRequest, sender: PeerID) -> Separate:
    """The records that the sender may store here. Raises ValueError for lists of unequal lengths.

    Neighbours hand over whole dictionaries, for the storage and for the cache. Of these, what belongs to another peer by
    its id only is left out: that peer itself stores it, again and again. For the cache, nothing is taken.
    """
    lists = (request.keys, request.subkeys, request.values, request.expiration_time, request.in_cache)
    kept, counts = dht_pb2.StoreRequest(peer=request.peer), []
    for key, tag, value, expiration, in_cache in zip(*lists, strict=True):
        count = 0
        for subkey, raw, until in () if in_cache else _records(tag, value, expiration):
            if belongs_to(subkey, sender):
                kept.keys.append(key)
                kept.subkeys.append(MSGPackSerializer.dumps(subkey))
                kept.values.append(raw)
                kept.expiration_time.append(until)
                kept.in_cache.append(False)
                count += 1
        counts.append(count)
    return Separate(kept, counts)


def _records(tag: bytes, value: bytes, expiration: float) -> Iterator[tuple[Any, bytes, float]]:
    try:
        if tag != DHTProtocol.IS_DICTIONARY:
            yield MSGPackSerializer.loads(tag), value, expiration
            return
        found = MSGPackSerializer.loads(value) if len(value) <= MOST_DICTIONARY else None
    except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
        return
    if isinstance(found, DictionaryDHTValue):
        for subkey, (raw, until) in found.data.items():
            if isinstance(raw, bytes) and isinstance(until, float):
                yield subkey, raw, until


class SharedStorage(DHTLocalStorage):
    """A node's storage, in which a record that is refused ends nothing."""

    def store_subkey(self, key: DHTID, subkey: Any, value: bytes, expiration_time: float) -> bool:
        found = self.get(key)
        before = found.value.get(subkey) if found is not None and isinstance(found.value, DictionaryDHTValue) else None
        if before is not None and before.expiration_time >= expiration_time:
            return False  # hivemind's would end what is there at `expiration_time`
        taken: bool = super().store_subkey(key, subkey, value, expiration_time)
        return taken


def install() -> None:
    """Let the nodes of this process and its later forks keep records so. Called again, it changes nothing."""
    protocol.DHTLocalStorage = SharedStorage
