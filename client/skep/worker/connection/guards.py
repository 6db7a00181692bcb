"""What a process accepts of the frames, records and values that other peers made, set up before its first fork.

Stock behaviour that this corrects, each covered by a test:
- a record of 1.4 kB, with extension types inside each other, ends every process that reads its key (SIGSEGV);
- a look-up never returns if one value under the key cannot be decoded;
- one bad record in another node's answer hides all records of that answer;
- a single value replaces a key's values of all peers;
- an expiration time that is no finite number breaks the order in which a key's values expire;
- a record of 16 kB with many beginnings of a signature takes its reader 0.2 s, and one of 1 MB a quarter of an hour;
- what another node says of a record replaces, in this one's own storage, the record that its owner has stored here;
- memory is taken for a frame of a stream as it arrives, whatever length the peer has announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Container
from typing import Any, Final

import hivemind
import msgpack
from hivemind.dht import DHTID, node
from hivemind.dht.node import DictionaryDHTValue
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.p2p import P2P
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.timed_storage import ValueWithExpiration

from skep.core.errors import BadInput
from skep.core.text import Text
from skep.worker.connection import neighbours, quotas, stored, streams, tasks

WRITTEN_FOR: Final = "1.1.12"
"""The version of hivemind whose internals are replaced here; in another one they may be others, and guard nothing."""
DEEPEST: Final = 8
"""Extension types inside each other; hivemind's own values have two."""
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a value that is decoded; p2pd delivers no longer request. It may be all records of a key."""
LONGEST_FRAME: Final = 4 * 1024 * 1024
"""Bytes of a frame of an answer. Parts of tensors and of a state have 0.5 MiB; what describes a state may be longer."""
LARGEST_RECORD: Final = 16 * 1024
"""Bytes of a peer's own record; a progress record has 0.9 kB, an invitation less than 2 kB."""
LONGEST_SUBKEY: Final = 512
"""Bytes; the longest of hivemind's have 391, of an RSA key in text. Stock averagers make any of them a peer's id."""
LONGEST_SECONDS: Final = 3600.0
"""How far ahead records may expire. In a project by invitation, invitations are kept until they end."""
LONGEST_UNSIGNED_SECONDS: Final = 660.0
"""How far those under a peer's id may. Averagers store them for 30 s, or for a matchmaking time, at most 600 s."""
ONCE: Final = (stored.OWNER, b"[signature:")
"""What hivemind looks for in a record, from each beginning of it to the record's end."""

_stock_receive = P2P.receive_raw_data
_stock_decode = MSGPackSerializer._decode_ext_types.__func__  # noqa: SLF001 - hivemind has no other way
_stock_loads = MSGPackSerializer.loads.__func__
_UNDECODABLE: Final = object()


async def _receive_raw_data(reader: asyncio.StreamReader) -> bytes:
    """In place of P2P.receive_raw_data. Raises ConnectionError, which ends the stream."""
    length = int.from_bytes(await reader.readexactly(P2P.HEADER_LEN), P2P.BYTEORDER)
    longest = streams.longest_frame.get() or LONGEST_FRAME
    if length > longest:
        raise ConnectionError(f"a peer announced a frame of {length} bytes, over the limit of {longest}")
    return await reader.readexactly(length)


class _Depth(threading.local):
    now = 0


_depth = _Depth()


def _decode_ext_types(serializer: type[MSGPackSerializer], code: int, data: bytes) -> Any:
    if _depth.now == DEEPEST:
        raise ValueError(f"extension types are nested more than {DEEPEST} times")
    _depth.now += 1
    try:
        return _stock_decode(serializer, code, data)
    finally:
        _depth.now -= 1


def _loads(serializer: type[MSGPackSerializer], data: bytes) -> Any:
    if len(data) > LARGEST:
        raise ValueError(f"a value of {len(data)} bytes, over the limit of {LARGEST}")
    return _stock_loads(serializer, data)


class CarefulSearch(node._SearchState):  # noqa: SLF001 - hivemind has no other way
    """The look-up of a key, which always ends: a value that cannot be decoded is left out.

    A peer's record under its id is not signed. Where this node has got it from that peer, other nodes say nothing of it.
    """

    _own: Container[Any] | None = None
    """What this node stores under ids of peers, known with the first candidate."""

    def add_candidate(self, candidate: ValueWithExpiration | None, source_node_id: DHTID | None) -> None:
        records = candidate.value.data if candidate and isinstance(candidate.value, DictionaryDHTValue) else {}
        if candidate is not None and records:
            known = self.binary_value.data if isinstance(self.binary_value, DictionaryDHTValue) else {}
            ours, newer = self._own or (), DictionaryDHTValue()
            for subkey, (raw, expiration) in records.items():
                if subkey not in ours and (subkey not in known or known[subkey].expiration_time < expiration):
                    newer.store(subkey, raw, expiration)
            candidate = ValueWithExpiration(newer, candidate.expiration_time)
        if self._own is None:
            self._own = {subkey for subkey in records if is_unsigned(subkey)}
        super().add_candidate(candidate, source_node_id)

    def finish_search(self) -> None:
        if self.future.done():
            return
        if isinstance(self.binary_value, DictionaryDHTValue):
            decoded = {
                subkey: ValueWithExpiration(value, expiration)
                for subkey, (raw, expiration) in self.binary_value.items()
                if (value := self._decoded(self.serializer.dumps(subkey), raw, expiration)) is not _UNDECODABLE
            }
            self.future.set_result(ValueWithExpiration(decoded, self.expiration_time))
            return
        try:
            super().finish_search()
        except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
            self.future.set_result(None)

    def _decoded(self, subkey: bytes, raw: bytes, expiration: float) -> Any:
        try:
            if self.record_validator is not None:
                record = DHTRecord(self.key_id.to_bytes(), subkey, raw, expiration)
                raw = self.record_validator.strip_value(record)
            return self.serializer.loads(raw)
        except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
            return _UNDECODABLE


def _keep_valid(protocol: DHTProtocol, key: bytes, records: DictionaryDHTValue) -> bool:
    """In place of DHTProtocol._validate_dictionary: remove invalid records. Returns whether any is left."""
    found = list(records.data.items())
    records.clear()
    records.maxsize, records.latest_expiration_time = math.inf, -math.inf  # another peer's values till now
    for subkey, (raw, expiration) in found:
        with contextlib.suppress(Exception):  # another peer's bytes may raise anything
            if protocol._validate_record(key, protocol.serializer.dumps(subkey), raw, expiration):  # noqa: SLF001 - hivemind has no other way
                records.store(subkey, raw, expiration)
    return bool(records.data)


def is_unsigned(subkey: object) -> bool:
    """Whether it is a peer's id, under which records are not signed."""
    return isinstance(subkey, bytes) and not stored.is_signed(subkey)


class RecordGuard(RecordValidatorBase):
    """Accepts records of one peer each, of a limited size, that can be decoded, and expire in time.

    Those of the key `lasting` need not.
    """

    def __init__(self, lasting: bytes = b"") -> None:
        self._lasting = lasting

    # before all others: of signatures, which take time to look for, and of schemas, which decode a record
    priority = 20

    def validate(self, record: DHTRecord) -> bool:
        return (
            isinstance(record.value, bytes)
            and record.subkey not in DHTProtocol.RESERVED_SUBKEYS
            and len(record.value) <= LARGEST_RECORD
            and len(record.subkey) <= LONGEST_SUBKEY
            and all(record.value.count(each) <= 1 and record.subkey.count(each) <= 1 for each in ONCE)
            and _is_number(record.expiration_time)
            and isinstance(subkey := _decoded_record(record.subkey), bytes | str)
            and not (is_unsigned(subkey) and len(subkey) > stored.LONGEST_ID)
            and record.expiration_time - get_dht_time() <= self._longest(record.key, subkey)
            and _decoded_record(record.value) is not _UNDECODABLE
        )

    def _longest(self, key: bytes, subkey: object) -> float:
        if key == self._lasting:
            return math.inf
        return LONGEST_UNSIGNED_SECONDS if is_unsigned(subkey) else LONGEST_SECONDS


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _decoded_record(raw: bytes) -> Any:
    try:
        return MSGPackSerializer.loads(raw)
    except msgpack.ExtraData as error:
        return error.unpacked  # followed by a signature that only peers of its run cut off
    except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
        return _UNDECODABLE


def install() -> None:
    """Guard this process and its later forks. Called again, it changes nothing.

    Raises BadInput for another version of hivemind.
    """
    if hivemind.__version__ != WRITTEN_FOR:
        raise BadInput(
            Text("worker.hivemind_other_version", found=hivemind.__version__, needed=WRITTEN_FOR),
            Text("worker.install_hivemind_version", needed=WRITTEN_FOR),
        )
    if P2P.receive_raw_data is _stock_receive:  # else it may be wrapped already, to count bytes
        P2P.receive_raw_data = staticmethod(_receive_raw_data)
    MSGPackSerializer._decode_ext_types = classmethod(_decode_ext_types)  # noqa: SLF001 - hivemind has no other way
    MSGPackSerializer.loads = classmethod(_loads)
    node._SearchState = CarefulSearch  # noqa: SLF001 - as above
    DHTProtocol._validate_dictionary = _keep_valid  # noqa: SLF001 - as above
    quotas.install()
    stored.install()
    neighbours.install()
    streams.install()
    tasks.install()
