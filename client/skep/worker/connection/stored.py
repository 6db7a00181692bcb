"""What this peer's part of the DHT keeps of others' records: each peer's own ones, so many of each and of all together.

Stock behaviour that this corrects, each covered by a test:
- anybody may store a record under another peer's id, and one that lasts longer keeps that peer's own ones out: then no
  group is found for a round, and no donor of the state;
- what a node was given for its cache hides what it stores, if it lasts longer;
- a record that is refused because a later one is there ends that one at its own, earlier end;
- one peer's records fill a key until an answer with them is longer than one may be, and all keys until no memory is left;
  long before, each peer that looks for a group has to fetch and check all of the key's records, five times a second;
- all that a node stores is handed to each one that it meets, in a single request, which is not delivered if it is too long.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final

from hivemind.dht import DHTID, protocol
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.storage import DHTLocalStorage, DictionaryDHTValue
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer
from hivemind.utils.timed_storage import TimedStorage, ValueWithExpiration

OWNER: Final = b"[owner:"
"""With this, and a key, begins a subkey whose records hivemind signs."""
LONGEST_ID: Final = 64
"""Bytes of a peer's id; libp2p's have 38 at most. Its text takes the square of its length: of 15 kB, 0.4 s."""
RECORD_BYTES: Final = 1024
"""What a record takes beside its value and subkey, at most."""
KEY_BYTES: Final = 2 * 1024 * 1024
"""Of all records of a key, RECORD_BYTES for each included. These are 900 peers' progress, or 700 invitations."""
ALL_BYTES: Final = 32 * 1024 * 1024
"""Of all records of all keys, counted so."""
LEFT: Final = 0.875
"""The part that is left when they were too many, so that they are counted seldom."""
OWN_LEFT: Final = 0.6
"""The same of a single peer's records under a key: these are fewer, and the largest one stays."""
OWN_BYTES: Final = 32 * 1024
"""What one peer may have under a key. An honest one has one record, of 3 kB at most."""
NEIGHBOUR_BYTES: Final = 512 * 1024
"""What a neighbour may hand over of others' records under a key. They store them again themselves, most every few seconds."""
FAIR_BYTES: Final = 16 * 1024
"""What a peer may have under a key before its records go first, when all together are too many."""
ALL_FAIR_BYTES: Final = 64 * 1024
"""The same under all keys; an honest one has some."""
HANDED_BYTES: Final = 3 * 1024 * 1024
"""Of what a node hands to one that it meets, in one request: p2pd delivers 4 MiB."""
GHOSTS: Final = 64
"""Ended or replaced records in a storage's order of expiration, more than those that are there."""

writer: ContextVar[Hashable] = ContextVar("writer", default=None)
"""Who asks for what is stored now; None for this peer."""


def is_id(subkey: object) -> bool:
    """Whether the subkey can be a peer's id; nothing else is made a PeerID."""
    return isinstance(subkey, bytes) and len(subkey) <= LONGEST_ID


def is_signed(subkey: object) -> bool:
    """Whether hivemind takes records under the subkey only with the signature of a key that is part of it."""
    # no regular expression: it takes the square of the length, which is not known to be small yet
    rest = subkey.partition(OWNER)[2] if isinstance(subkey, bytes) else b""
    end = rest.find(b"]", 1)
    return end > 0 and b"\n" not in rest[:end]


def belongs_to(subkey: object, peer: PeerID) -> bool:
    """Whether the peer may store a record under the subkey.

    hivemind's subkeys of bytes are peers' ids and peers' public keys, under which records are signed.
    """
    return isinstance(subkey, str) or is_signed(subkey) or subkey == peer.to_bytes()


@dataclass(frozen=True)
class Neighbour:
    """Who hands over what it stores for others, as whole dictionaries."""

    peer: Hashable


def writer_of(request: dht_pb2.StoreRequest, sender: Hashable) -> Hashable:
    """Whom the records of the request count for; a peer's own ones and others' are not in one request."""
    return Neighbour(sender) if DHTProtocol.IS_DICTIONARY in request.subkeys else sender


@dataclass(frozen=True)
class Separate:
    """A request to store, with each record by itself."""

    request: dht_pb2.StoreRequest
    counts: list[int]
    """How many records there are of each entry of the original."""

    def answers(self, taken: Iterable[bool]) -> list[bool]:
        """Whether at least one record of each original entry was taken."""
        each = iter(taken)
        return [any(list(islice(each, number))) for number in self.counts]


def separate(request: dht_pb2.StoreRequest, sender: PeerID) -> Separate:
    """The records that the sender may store here. Raises ValueError for lists of unequal lengths.

    Neighbours hand over whole dictionaries, for the storage and for the cache. Of these, what belongs to another peer by
    its id only is left out: that peer itself stores it, again and again. For the cache, nothing is taken.
    """
    lists = (request.keys, request.subkeys, request.values, request.expiration_time, request.in_cache)
    kept, counts = dht_pb2.StoreRequest(peer=request.peer), list[int]()
    for key, tag, value, expiration, in_cache in zip(*lists, strict=True):
        before = len(kept.keys)
        for subkey, raw, until in () if in_cache else _records(tag, value, expiration):
            if belongs_to(subkey, sender):
                kept.keys.append(key)
                kept.subkeys.append(MSGPackSerializer.dumps(subkey))
                kept.values.append(raw)
                kept.expiration_time.append(until)
                kept.in_cache.append(False)
        counts.append(len(kept.keys) - before)
    return Separate(kept, counts)


def _records(tag: bytes, value: bytes, expiration: float) -> Iterator[tuple[Any, bytes, float]]:
    try:
        if tag != DHTProtocol.IS_DICTIONARY:
            yield MSGPackSerializer.loads(tag), value, expiration
            return
        found = MSGPackSerializer.loads(value) if len(value) <= KEY_BYTES else None
    except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
        return
    if isinstance(found, DictionaryDHTValue):
        for subkey, (raw, until) in found.data.items():
            if isinstance(raw, bytes) and isinstance(until, float):
                yield subkey, raw, until


class SharedStorage(DHTLocalStorage):
    """A node's storage. If records are too many, those go that were stored first by whoever has stored most."""

    def __init__(self, maxsize: int | None = None) -> None:
        super().__init__(maxsize)
        self._writers: dict[DHTID, dict[Any, Hashable]] = {}
        """Who has stored each record; those stored last come last."""
        self._sizes = defaultdict[DHTID, int](int)
        """No less than the bytes of each key's records: those that have expired are in it until they are too many."""
        self._shares = defaultdict[DHTID, Counter[Hashable]](Counter)
        """The same of each peer."""
        self._size = 0
        """No less than those of all keys."""

    def store_subkey(self, key: DHTID, subkey: Any, value: bytes, expiration_time: float) -> bool:
        before = self._of(key).get(subkey)
        if before is not None and before.expiration_time >= expiration_time:
            return False  # hivemind's would end what is there at `expiration_time`
        if not super().store_subkey(key, subkey, value, expiration_time):
            return False
        whose = self._note(key, subkey, _size(subkey, value), _size(subkey, before.value) if before else 0)
        self._make_room(key, whose)
        _forget_ghosts(self)
        _forget_ghosts(self._of(key))
        return subkey in self._of(key).data

    def items(self) -> Iterator[tuple[DHTID, ValueWithExpiration[Any]]]:
        """What is handed to a node that this one meets: keys of most peers first, as many as one request carries."""
        writers = {key: self._writers_of(key) for key in self._writers}
        left = HANDED_BYTES
        for key in sorted(writers, key=lambda key: -len(set(writers[key].values()))):
            found, size = self.get(key), self._counted(key)
            if found is not None and 0 < size <= left:
                left -= size
                yield key, found
            if left < RECORD_BYTES:
                return

    def _note(self, key: DHTID, subkey: Any, size: int, before: int) -> Hashable:
        """A record of `size` bytes replaces one of `before`. Returns who has stored it."""
        writers, whose = self._writers.pop(key, {}), writer.get()
        self._shares[key][writers.pop(subkey, whose)] -= before
        self._shares[key][whose] += size
        writers[subkey] = whose
        self._writers[key] = writers
        self._sizes[key] += size - before
        self._size += size - before
        return whose

    def _make_room(self, key: DHTID, whose: Hashable) -> None:
        most = NEIGHBOUR_BYTES if isinstance(whose, Neighbour) else OWN_BYTES
        if whose is not None and self._shares[key][whose] > most:
            records = self._held([key], whose)[whose]
            gone = list(_surplus({whose: records}, most, FAIR_BYTES, OWN_LEFT))
            self._remove(gone)
            self._shares[key][whose] = sum(record.size for record in records)
            self._sizes[key] -= sum(record.size for record in gone)
            self._size -= sum(record.size for record in gone)
        if self._sizes[key] > KEY_BYTES:
            self._remove(_surplus(self._held([key]), KEY_BYTES, FAIR_BYTES))
            self._count(key)
        if self._size > ALL_BYTES:
            self._remove(_surplus(self._held(list(self._writers)), ALL_BYTES, ALL_FAIR_BYTES))
            self._sizes.clear()
            self._shares.clear()
            for each in self._writers:
                self._count(each)
            self._size = sum(self._sizes.values())

    def _count(self, key: DHTID) -> None:
        """Of the records that are there now."""
        there, shares = self._of(key).data, self._shares[key]
        shares.clear()
        for subkey, whose in self._writers_of(key).items():
            shares[whose] += _size(subkey, there[subkey].value)
        self._sizes[key] = shares.total()

    def _of(self, key: DHTID) -> TimedStorage[Any, bytes]:
        """The records of the key that have not expired."""
        found = self.get(key)
        records = found.value if found is not None and isinstance(found.value, DictionaryDHTValue) else TimedStorage()
        len(records)  # removes what has expired
        return records

    def _writers_of(self, key: DHTID) -> dict[Any, Hashable]:
        """Who has stored each record of the key that has not expired."""
        there = self._of(key).data
        return {subkey: each for subkey, each in self._writers.get(key, {}).items() if subkey in there}

    def _counted(self, key: DHTID) -> int:
        return sum(_size(subkey, value) for subkey, (value, _) in self._of(key).items())

    def _held(self, keys: Iterable[DHTID], only: Hashable = None) -> dict[Hashable, deque[_Record]]:
        """The records of each peer under the keys, or of `only` one of them, the oldest first."""
        held, numbers = defaultdict[Hashable, deque[_Record]](deque), count()
        for key in keys:
            there, writers = self._of(key).data, self._writers_of(key)
            if writers:
                self._writers[key] = writers
            else:
                del self._writers[key]
            for subkey, each in writers.items():
                if only is None or each == only:
                    held[each].append(_Record(next(numbers), key, subkey, _size(subkey, there[subkey].value)))
        return held

    def _remove(self, records: Iterable[_Record]) -> None:
        for record in records:
            there, writers = self._of(record.key), self._writers[record.key]
            del there[record.subkey], writers[record.subkey]
            if not writers:
                del self[record.key], self._writers[record.key]


@dataclass(frozen=True)
class _Record:
    number: int
    """Its place in the order in which records were stored, of each key by itself."""
    key: DHTID
    subkey: Any
    size: int


def _size(subkey: bytes | str, value: bytes) -> int:
    return RECORD_BYTES + len(subkey) + len(value)


def _surplus(held: dict[Hashable, deque[_Record]], limit: int, fair: int, left: float = LEFT) -> Iterator[_Record]:
    """What has to go if all together have more than `limit` bytes; what this peer has stored stays.

    Peers with fewer than `fair` bytes are equal: else one with a small record would outlast one that says more.
    """
    sizes = {who: sum(record.size for record in records) for who, records in held.items()}
    total = sum(sizes.values())
    surplus = total - limit * left if total > limit else 0.0
    first = [
        (-(sizes[who] // fair), records[0].number, who) for who, records in held.items() if who is not None and records
    ]
    heapq.heapify(first)
    while surplus > 0 and first:
        _, _, who = heapq.heappop(first)
        record = held[who].popleft()
        surplus -= record.size
        sizes[who] -= record.size
        if held[who]:
            heapq.heappush(first, (-(sizes[who] // fair), held[who][0].number, who))
        yield record


def _forget_ghosts(storage: TimedStorage[Any, Any]) -> None:
    """Remove replaced records from the order of expiration, where hivemind keeps them until they would have expired."""
    if len(storage.expiration_heap) > 2 * len(storage.data) + GHOSTS:
        storage.expiration_heap = list(storage.key_to_heap.values())
        heapq.heapify(storage.expiration_heap)


def install() -> None:
    """Let the nodes of this process and its later forks keep records so. Called again, it changes nothing."""
    protocol.DHTLocalStorage = SharedStorage
