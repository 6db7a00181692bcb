"""Known attacks, which a process sends to its own guards before it joins: another library may have undone one of them.

Each is sent where another peer's bytes arrive: to hivemind's classes as this process has changed them, or to what skep
puts in their place. They run in a fork, since an attack that passes may end the process or keep it for ever.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import math
import multiprocessing
import os
import signal
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import torch
from hivemind.dht import DHTID, node
from hivemind.dht.node import DictionaryDHTValue
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import RoutingTable
from hivemind.dht.validation import DHTRecord
from hivemind.p2p import P2P, PeerID
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from skep.core.errors import BadInput
from skep.core.text import Text
from skep.worker import self_test_rounds as rounds
from skep.worker.attempts import LEVELS, UNDECODABLE, nested, raises, within_time
from skep.worker.connection import guards, quotas, streams
from skep.worker.swarm.claims import Claim
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.state.donor import Offer
from skep.worker.swarm.state.download import Partial, Progress, Wanted
from skep.worker.swarm.state.pieces import Piece, Refusal, check

TEST_SECONDS: Final = 20.0
ONE: Final = MSGPackSerializer.dumps(1)

Attack = Callable[[], bool]
"""Whether it was refused; any error means that it was not."""


def run() -> None:
    """Install the guards, send each known attack to them, and raise BadInput if one passes. Takes less than 0.1 s."""
    begin()()


def begin() -> Callable[[], None]:
    """Install the guards, and begin to send each known attack to them in another process.

    The function that is returned waits for that, and raises BadInput if one has passed.
    """
    guards.install()
    at = multiprocessing.get_context("fork").Value("i", 0, lock=False)
    child = multiprocessing.get_context("fork").Process(target=_send_all, args=(at,), daemon=True)
    child.start()

    def check() -> None:
        try:
            child.join(TEST_SECONDS)
            refused = child.exitcode == 0
        finally:
            child.kill()
            child.join()
            child.close()
        if not refused:
            raise BadInput(
                Text("worker.self_test_failed", attack=list(ATTACKS)[at.value]), Text("worker.self_test_reinstall")
            )

    return check


def _send_all(at: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this process
    faulthandler.disable()  # of a crash the attack's name is enough
    logging.disable()  # hivemind warns of each attack
    for number, attack in enumerate(ATTACKS.values()):
        at.value = number
        if not attack():
            os._exit(1)


# --- records and questions


def nested_record() -> bool:
    return raises(ValueError, lambda: MSGPackSerializer.loads(nested(LEVELS)))


def large_value() -> bool:
    value = MSGPackSerializer.dumps(bytes(guards.LARGEST))
    return raises(ValueError, lambda: MSGPackSerializer.loads(value))


def long_frame() -> bool:
    """A frame of which only the announced length is there."""

    async def receive() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data((guards.LONGEST_FRAME + 1).to_bytes(P2P.HEADER_LEN, P2P.BYTEORDER))
        await P2P.receive_raw_data(reader)

    return raises(ConnectionError, lambda: within_time(receive()))


class _Daemon:
    """What a process tells its p2pd of the streams that it serves."""

    _listen_task: Final = True

    @property
    def _client(self) -> Any:
        return self

    async def stream_handler(self, _name: str, handler: Any, _balanced: object) -> None:
        self.handler = handler


def many_streams() -> bool:
    """Streams of one peer that do not end by themselves."""
    served: list[object] = []

    async def open_all() -> None:
        daemon, over = _Daemon(), asyncio.Event()

        async def serve(*stream: object) -> None:
            served.append(stream)
            await over.wait()

        await P2P.add_binary_stream_handler(daemon, "", serve)
        stream, writer = SimpleNamespace(peer_id=b"hostile"), SimpleNamespace(close=over.set)
        await asyncio.gather(*(daemon.handler(stream, None, writer) for _ in range(streams.OF_ONE_PEER + 1)))

    within_time(open_all())
    return len(served) == streams.OF_ONE_PEER


def looked_up(bad: bytes) -> Any:
    """What a look-up finds under a key with this value of one peer and a good one of another. Raises TimeoutError."""

    async def search() -> Any:
        values = DictionaryDHTValue()
        values.store(b"bad", bad, math.inf)
        values.store(b"good", ONE, math.inf)
        state = node._SearchState(DHTID.generate(source=b"key"), 0.0)  # noqa: SLF001 - hivemind has no other way
        state.binary_value, state.expiration_time, state.source_node_id = values, math.inf, state.key_id
        state.finish_search()
        return await state.future

    return within_time(search()).value


def undecodable_value() -> bool:
    """The look-up ends, with the other peer's value."""
    return [value.value for value in looked_up(UNDECODABLE).values()] == [1]


def bad_neighbour() -> bool:
    """One record of an answer is bad, and another peer's is kept."""

    def is_valid(*record: Any) -> bool:
        return guards.RecordGuard().validate(DHTRecord(*record))

    values = DictionaryDHTValue()
    values.store(b"bad", UNDECODABLE, get_dht_time() + 1)
    values.store(b"good", ONE, get_dht_time() + 1)
    asker: Any = SimpleNamespace(
        serializer=MSGPackSerializer, record_validator=guards.RecordGuard(), _validate_record=is_valid
    )
    return DHTProtocol._validate_dictionary(asker, b"key", values) and set(values.data) == {b"good"}  # noqa: SLF001 - as above


def bad_records() -> bool:
    """Values in the place of those of all peers, of wrong kinds and sizes, and without an end."""
    name, soon = MSGPackSerializer.dumps(b"peer"), get_dht_time() + 1
    bad = [
        (DHTProtocol.IS_REGULAR_VALUE, ONE, soon),
        (DHTProtocol.IS_DICTIONARY, ONE, soon),
        (MSGPackSerializer.dumps([1]), ONE, soon),
        (nested(LEVELS), ONE, soon),
        (MSGPackSerializer.dumps(bytes(guards.LONGEST_SUBKEY)), ONE, soon),
        (name, UNDECODABLE, soon),
        (name, nested(LEVELS), soon),
        (name, MSGPackSerializer.dumps(bytes(guards.LARGEST_RECORD)), soon),
        (name, ONE, math.inf),
        (name, ONE, math.nan),
        (name, ONE, soon + guards.LONGEST_SECONDS),
    ]
    guard = guards.RecordGuard()
    good = guard.validate(DHTRecord(b"key", name, ONE, soon))
    return good and not any(guard.validate(DHTRecord(b"key", *each)) for each in bad)


class _Node:
    """What a store or a question reads of a node before it takes anything from it."""

    storage = ()
    node_info = dht_pb2.NodeInfo()


_NODE: Final[Any] = _Node()
_SENDER: Final[Any] = SimpleNamespace(remote_id=b"hostile")


def flood_of_records() -> bool:
    count = quotas.ENTRIES + 1
    request = dht_pb2.StoreRequest(keys=[b"key"] * count, values=[ONE] * count)
    answer = asyncio.run(DHTProtocol.rpc_store(_NODE, request, _SENDER))
    return not any(answer.store_ok)


def repeated_question() -> bool:
    request = dht_pb2.FindRequest(keys=[b"key"] * 2)
    return raises(ValueError, lambda: asyncio.run(DHTProtocol.rpc_find(_NODE, request, _SENDER)))


class _Table:
    """What a peer that tells of itself may change of a node."""

    storage: Final[dict[str, object]] = {}

    def __init__(self) -> None:
        self.node_id, self.routing_table = (
            DHTID.generate(),
            RoutingTable(DHTID.generate(), bucket_size=20, depth_modulo=5),
        )


def invented_neighbours() -> bool:
    """A peer says that it is ever new nodes, and one that it is another peer's."""
    place, met, hostile, at = DHTID.generate(), PeerID(b"met"), PeerID(b"hostile"), _Table()

    async def introduce() -> None:
        told = [(place, met), *((DHTID.generate(), hostile) for _ in range(10)), (place, hostile)]
        for each in told:
            await DHTProtocol.update_routing_table(at, *each)

    asyncio.run(introduce())
    places = at.routing_table.uid_to_peer_id
    return places.get(place) == met and list(places.values()).count(hostile) == 1


# --- progress


def false_epoch() -> bool:
    """However many peers claim it."""
    experience, now = Experience(), get_dht_time()
    experience.loaded(5, now)
    claims = {number: Claim(f"peer {number}", 10**9, 0, 0.0) for number in range(100)}
    return not experience.believed(claims, Claim("", 5, 0, 0.0), now).claims


def false_samples() -> bool:
    experience, now = Experience(), get_dht_time()
    experience.averaged(4, ("met",), now)
    claims = {1: Claim("met", 5, 10, 1.0), 2: Claim("stranger", 5, 10**9, 1e9)}
    found = experience.believed(claims, Claim("", 5, 10, 1.0), now).claims
    return sum(each.samples for each in found.values()) <= 3 * 10 and sum(each.rate for each in found.values()) <= 4.0  # noqa: PLR2004 - 10 and 1.0 of two, and as much again


def invented_peers() -> bool:
    """Progress in the names of peers that nobody answers for."""
    claims = {number: Claim(f"peer {number}", 5, 10, 1.0) for number in range(100)}
    found = Experience().believed(
        claims, Claim("", 5, 0, 0.0), get_dht_time(), there=lambda ids: dict.fromkeys(ids, 0.0)
    )
    return not any(each.samples or each.rate for each in found.claims.values())


# --- states


def bad_state() -> bool:
    """Tensors of another shape or kind, that are not finite, too large, or negative where none can be."""
    piece = Piece((2,), torch.float32, 8)
    moments = Piece((2,), torch.float32, 8, non_negative=True)
    bad = [
        (piece, torch.ones(3)),
        (piece, torch.ones(2, dtype=torch.float64)),
        (piece, torch.tensor([1.0, math.nan])),
        (piece, torch.tensor([1.0, -2 * piece.largest])),
        (moments, torch.tensor([1.0, -1.0])),
    ]
    check(0, torch.ones(2), piece)
    return all(raises(Refusal, partial(check, 0, tensor, piece)) for piece, tensor in bad)


def false_epoch_of_a_state() -> bool:
    known = 5
    arriving = Partial(Wanted((), (0, known)), Progress())
    labels: list[object] = [{"epoch": 10**9}, {"epoch": "5"}, {}, [1]]
    offers = [Offer(copy="copy", metadata=msgspec.msgpack.encode(label)) for label in labels]
    arriving.begin(Offer(copy="copy", metadata=msgspec.msgpack.encode({"epoch": known})))
    return all(raises(Refusal, partial(arriving.begin, each)) for each in offers)


ATTACKS: Final[dict[str, Attack]] = {
    "nested record": nested_record,
    "large value": large_value,
    "long frame": long_frame,
    "many streams": many_streams,
    "undecodable value": undecodable_value,
    "bad records": bad_records,
    "bad neighbour": bad_neighbour,
    "flood of records": flood_of_records,
    "repeated question": repeated_question,
    "invented neighbours": invented_neighbours,
    "false epoch": false_epoch,
    "false samples": false_samples,
    "invented peers": invented_peers,
    "false claims": rounds.false_claims,
    "bad parts": rounds.bad_parts,
    "undecoded parts": rounds.undecoded_parts,
    "large gradients": rounds.large_gradients,
    "false parameters": rounds.false_parameters,
    "bad state": bad_state,
    "false epoch of a state": false_epoch_of_a_state,
}
