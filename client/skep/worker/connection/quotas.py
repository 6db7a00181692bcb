"""How much another peer may store in this one's part of the DHT, and ask of it.

Stock behaviour that this corrects, each covered by a test:
- a peer that stores new keys without a limit fills the memory of every node, and each repeated store of one key takes
  memory until its expiration;
- a question may name the same key any number of times, and the answer repeats its value so many times;
- a peer may ask without end, and each question draws an answer of up to 4 MiB, whatever the limits on traffic.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2PContext
from hivemind.proto import dht_pb2

from skep.worker.connection import stored

ENTRIES: Final = 2_000
"""Records that a peer may store at once. A neighbour hands over those of all keys, which have one of each peer."""
ENTRIES_PER_SECOND: Final = 5.0
"""An honest peer stores about one."""
BYTES: Final = 16 * 1024 * 1024
BYTES_PER_SECOND: Final = 64 * 1024
MOST_ASKED: Final = 256
"""Keys of one question; an honest peer asks for a few, each once."""
ANSWERED: Final = 4 * 1024 * 1024
"""Bytes of answers that a peer which has asked for nothing yet gets at once."""
MOST_ANSWERED: Final = 16 * 1024 * 1024
"""The most that it gets at once, after a while without questions."""
ANSWERED_PER_SECOND: Final = 256 * 1024
"""Bytes. Of 400 peers, each asks for the progress of all some dozen times in an epoch, 0.5 MB each time."""
SENDERS: Final = 4_096
"""Peers that are remembered. Peer ids cost nothing, so `stored` bounds what all of them store."""
ENTRY_BYTES: Final = 100
"""What an entry takes beside its value."""


@dataclass
class _Left:
    entries: float
    size: float
    at: float


class Quotas:
    """What each peer has left, by the peer's authenticated id. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[Hashable, _Left] = OrderedDict()

    def take(self, sender: Hashable, entries: int, size: int) -> bool:
        """Whether the peer may store so many entries of so many bytes now; then they are taken from what it has left."""
        now = self._clock()
        left = self._left.setdefault(sender, _Left(ENTRIES, BYTES, now))
        self._left.move_to_end(sender)
        while len(self._left) > SENDERS:
            self._left.popitem(last=False)
        passed, left.at = now - left.at, now
        left.entries = min(ENTRIES, left.entries + passed * ENTRIES_PER_SECOND)
        left.size = min(BYTES, left.size + passed * BYTES_PER_SECOND)
        if entries > left.entries or size > left.size:
            return False
        left.entries -= entries
        left.size -= size
        return True


@dataclass
class _Credit:
    size: float
    at: float


class Answers:
    """What each peer may still be answered, by its authenticated id. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._credits: OrderedDict[Hashable, _Credit] = OrderedDict()

    def may_ask(self, asker: Hashable) -> bool:
        """Whether the peer is answered now."""
        now = self._clock()
        credit = self._credits.setdefault(asker, _Credit(ANSWERED, now))
        self._credits.move_to_end(asker)
        while len(self._credits) > SENDERS:
            self._credits.popitem(last=False)
        passed, credit.at = now - credit.at, now
        credit.size = min(MOST_ANSWERED, credit.size + passed * ANSWERED_PER_SECOND)
        return credit.size > 0

    def count(self, asker: Hashable, size: int) -> None:
        """The peer has been answered so many bytes; `may_ask` came before. What is too much delays its next answer."""
        self._credits[asker].size -= size


_stock_store, _stock_find = DHTProtocol.rpc_store, DHTProtocol.rpc_find
_quotas: WeakKeyDictionary[DHTProtocol, Quotas] = WeakKeyDictionary()
_answers: WeakKeyDictionary[DHTProtocol, Answers] = WeakKeyDictionary()


async def _store(self: Any, request: dht_pb2.StoreRequest, context: P2PContext) -> dht_pb2.StoreResponse:
    """In place of DHTProtocol.rpc_store: refuse all entries of a request that is over the limits.

    Raises ValueError for lists of unequal lengths.
    """
    quotas, sender = _quotas.setdefault(self, Quotas()), context.remote_id
    count = len(request.keys)
    size = sum(map(len, request.values)) + sum(map(len, request.subkeys)) + ENTRY_BYTES * count
    if not quotas.take(sender, count, size):
        return _refusal(self, count)
    separate = stored.separate(request, sender)
    if not quotas.take(sender, max(0, sum(separate.counts) - count), 0):
        return _refusal(self, count)
    asked = stored.writer.set(stored.writer_of(request, sender))
    try:
        answer: dht_pb2.StoreResponse = await _stock_store(self, separate.request, context)
    finally:
        stored.writer.reset(asked)
    return dht_pb2.StoreResponse(store_ok=separate.answers(answer.store_ok), peer=answer.peer)


def _refusal(protocol: Any, count: int) -> dht_pb2.StoreResponse:
    return dht_pb2.StoreResponse(store_ok=[False] * count, peer=protocol.node_info)


async def _find(self: Any, request: dht_pb2.FindRequest, context: P2PContext) -> dht_pb2.FindResponse:
    """In place of DHTProtocol.rpc_find. Raises ValueError, which refuses a question."""
    if len(request.keys) > MOST_ASKED or len(set(request.keys)) < len(request.keys):
        raise ValueError(f"a question for {len(request.keys)} keys, too many or some of them twice")
    answers, asker = _answers.setdefault(self, Answers()), context.remote_id
    if not answers.may_ask(asker):
        raise ValueError(f"{asker} asks for more than {ANSWERED_PER_SECOND} bytes per second")
    answer: dht_pb2.FindResponse = await _stock_find(self, request, context)
    answers.count(asker, answer.ByteSize())
    return answer


def install() -> None:
    """Limit what this process and its later forks take and answer. Called again, it changes nothing."""
    DHTProtocol.rpc_store, DHTProtocol.rpc_find = _store, _find
