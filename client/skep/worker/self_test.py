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
from collections.abc import Callable, Coroutine
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import msgpack
import msgspec
import torch
from hivemind.averaging.partition import AllreduceException
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
from skep.worker.connection import guards, quotas, streams
from skep.worker.swarm.averaging.groups import LONGEST_EPOCH, from_message, is_credible
from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.robust import JUDGES, LOOSE, Combination, Median, Part, RobustMean
from skep.worker.swarm.claims import Claim
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.state.donor import Offer
from skep.worker.swarm.state.download import Partial, Progress, Wanted
from skep.worker.swarm.state.pieces import Piece, Refusal, check

TEST_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 5.0
"""For an attack that would be waited for."""
EXTENSION: Final = 0x40
"""hivemind's extension of msgpack, which is decoded recursively."""
LEVELS: Final = 280
"""As many take a stock reader's whole stack."""
UNDECODABLE: Final = b"\xc1"
HUGE: Final = 1e6
ONE: Final = MSGPackSerializer.dumps(1)

Attack = Callable[[], bool]
"""Whether it was refused; any error means that it was not."""


def run() -> None:
    """Install the guards, send each known attack to them, and raise BadInput if one passes. Takes less than 0.1 s."""
    guards.install()
    at = multiprocessing.get_context("fork").Value("i", 0, lock=False)
    child = multiprocessing.get_context("fork").Process(target=_send_all, args=(at,), daemon=True)
    child.start()
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


def _send_all(at: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this process
    faulthandler.disable()  # of a crash the attack's name is enough
    logging.disable()  # hivemind warns of each attack
    for number, attack in enumerate(ATTACKS.values()):
        at.value = number
        if not attack():
            os._exit(1)


def _raises(kind: type[Exception], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def _within_time(answer: Coroutine[Any, Any, object]) -> Any:
    return asyncio.run(asyncio.wait_for(answer, ANSWER_SECONDS))


# --- records and questions


def nested(levels: int) -> bytes:
    """A value of `levels` extension types inside each other."""
    value: bytes = msgpack.packb([])
    for _ in range(levels):
        value = msgpack.packb(msgpack.ExtType(EXTENSION, value))
    return value


def nested_record() -> bool:
    return _raises(ValueError, lambda: MSGPackSerializer.loads(nested(LEVELS)))


def large_value() -> bool:
    value = MSGPackSerializer.dumps(bytes(guards.LARGEST))
    return _raises(ValueError, lambda: MSGPackSerializer.loads(value))


def long_frame() -> bool:
    """A frame of which only the announced length is there."""

    async def receive() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data((guards.LONGEST_FRAME + 1).to_bytes(P2P.HEADER_LEN, P2P.BYTEORDER))
        await P2P.receive_raw_data(reader)

    return _raises(ConnectionError, lambda: _within_time(receive()))


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

    _within_time(open_all())
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

    return _within_time(search()).value


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
    return _raises(ValueError, lambda: asyncio.run(DHTProtocol.rpc_find(_NODE, request, _SENDER)))


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


# --- rounds


def false_claims() -> bool:
    """What a member of a group says of itself: its bandwidth, and the epoch that it brings."""
    mode, data = 0, MSGPackSerializer.dumps(None)
    bad = [MSGPackSerializer.dumps((bandwidth, mode, data)) for bandwidth in (HUGE, -1.0, math.nan, "all")]
    bad += [MSGPackSerializer.dumps((None, 99, data)), nested(LEVELS), UNDECODABLE]
    return (
        is_credible(MSGPackSerializer.dumps((None, mode, data)))
        and not any(map(is_credible, bad))
        and from_message(b"9" * (LONGEST_EPOCH + 1)) is None
    )


def bad_parts() -> bool:
    """Parts that are not finite, of another shape or kind or number, and weights that are none."""
    good = torch.ones(4)
    bad: list[tuple[int, torch.Tensor, float]] = [
        (0, torch.tensor([math.nan, 1.0, 1.0, 1.0]), 1.0),
        (0, torch.tensor([math.inf, 1.0, 1.0, 1.0]), 1.0),
        (0, torch.ones(5), 1.0),
        (0, torch.ones(1), 1.0),
        (0, torch.ones(2, 2), 1.0),
        (0, torch.ones(4, dtype=torch.int64), 1.0),
        (1, good, 1.0),
        (-1, good, 1.0),
        (0, good, math.nan),
        (0, good, math.inf),
        (0, good, -1.0),
    ]

    async def sent(number: int, values: torch.Tensor, weight: float) -> None:
        senders: Any = [b"own", b"hostile"]
        reducer = CheckedReducer([torch.Size([4])], senders, RobustMean(b"own"), 0)
        await reducer.accumulate_part(1, number, values, weight)

    return all(_raises(AllreduceException, partial(_within_time, sent(*each))) for each in bad)


def large_gradients() -> bool:
    return _largest_of(RobustMean("peer 0")) <= LOOSE


def false_parameters() -> bool:
    return _largest_of(Median()) <= 1.0


def _largest_of(combination: Combination) -> float:
    """The largest value of the combination of ones and one peer's huge values."""
    honest = [Part(f"peer {number}", torch.ones(4), 1.0) for number in range(JUDGES)]
    combination.begin()
    return float(combination.combine(0, [*honest, Part("hostile", torch.full((4,), HUGE), 1.0)]).values.max())


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
    return all(_raises(Refusal, partial(check, 0, tensor, piece)) for piece, tensor in bad)


def false_epoch_of_a_state() -> bool:
    known = 5
    arriving = Partial(Wanted((), (0, known)), Progress())
    labels: list[object] = [{"epoch": 10**9}, {"epoch": "5"}, {}, [1]]
    offers = [Offer(copy="copy", metadata=msgspec.msgpack.encode(label)) for label in labels]
    arriving.begin(Offer(copy="copy", metadata=msgspec.msgpack.encode({"epoch": known})))
    return all(_raises(Refusal, partial(arriving.begin, each)) for each in offers)


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
    "false claims": false_claims,
    "bad parts": bad_parts,
    "large gradients": large_gradients,
    "false parameters": false_parameters,
    "bad state": bad_state,
    "false epoch of a state": false_epoch_of_a_state,
}
