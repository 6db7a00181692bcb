"""Relays of libp2p: a peer that nobody can dial is reached through a seed, to which it keeps a connection open.

hivemind starts p2pd so that it looks for relays in the background, which takes minutes, and does not pass on the options
that a relay needs. `start_relaying` and `through` add to hivemind's choices of `force_reachability`; both are for a DHT of
this process that is started after the call.

p2pd also starts two relays, one with the limits of its options, and one with libp2p's own of 128 KiB and 2 min for each
connection. The one that was started last answers, and which that is, chance decides at each start.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import hivemind
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from hivemind.p2p import P2P
from hivemind.p2p.p2p_daemon_bindings.utils import read_pbmsg_safe
from hivemind.utils import get_logger

from skep.core.project.addresses import host_of
from skep.core.text import Text
from skep.worker.connection.watch import Part

TAKEN_SECONDS: Final = 3.0
"""How long a relay may take to accept a peer; it takes milliseconds and the way there and back."""
LOOK_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 10.0
UNDIALLED: Final = 0.01
"""What a peer behind a relay says of its bandwidth, where the others say 1: it averages parts for others only where nobody
can be dialled, since the relay carries all that is sent to it."""

DATA_LIMIT: Final = 1 << 50
"""Bytes that a relayed connection may carry."""
STARTS: Final = 12
"""How often a relay is started until our limits count; nearly every second start is right (7 of 16 measured)."""
RELAYED_STARTS: Final = 5
"""How often a peer behind a relay is started: p2pd may end for no reason but chance (1 of 10 starts on a busy computer)."""
NO_BOOTSTRAP: Final = "failed to connect to bootstrap peers"
"""What p2pd says before it ends if it could connect to none of its first peers."""
ASK_SECONDS: Final = 30.0
"""How long a relay may take to tell its limits, with the start of the p2pd that asks."""
HOP: Final = "/libp2p/circuit/relay/0.2.0/hop"
"""libp2p's protocol by which a peer asks a relay to accept it; the messages are in its specification "circuit v2"."""
RESERVE: Final = bytes((2, 8, 0))
LIMIT_FIELD, DATA_FIELD = 4, 2

logger = get_logger(__name__)

_OPTIONS: Final[dict[str, dict[str, int | str]]] = {
    # by default p2pd allows 4 GiB and 30 min, and has two buffers of 16 MiB for each connection
    "skep-relay": {
        "forceReachabilityPublic": 1,
        "relayDataLimit": DATA_LIMIT,
        "relayTimeLimit": "8760h",
        "relayMaxCircuits": 128,
        "relayBufferSize": 1 << 18,
    },
    "skep-relayed": {"forceReachabilityPrivate": 1, "relayDiscovery": 0},
}


def _prepare() -> None:
    P2P.FORCE_REACHABILITY_MAPPING.update(_OPTIONS)


def data_limit(dht: hivemind.DHT, address: str = "") -> int:
    """How many bytes a connection through this relay may carry, as it says itself. Raises an exception if it does not.

    `address` is where it can be dialled from this computer; "" if it is at its visible address.
    """
    look = dht.run_coroutine(partial(_data_limit, address=address), return_future=True)
    return int(look.result(ASK_SECONDS))


# it runs in the DHT's process, as below; p2pd cannot dial itself
async def _data_limit(_dht: hivemind.DHT, node: Any, *, address: str) -> int:
    relay = node.p2p.peer_id
    address = f"{address}/p2p/{relay}" if address else str((await node.p2p.get_visible_maddrs())[0])
    asking = await P2P.create(initial_peers=[address], dht_mode="client", startup_timeout=ASK_SECONDS)
    try:
        _, reader, writer = await asking.call_binary_stream_handler(relay, HOP)
        with contextlib.closing(writer):
            writer.write(RESERVE)
            await writer.drain()
            return await _told(reader)
    finally:
        await asking.shutdown()


async def _told(reader: asyncio.StreamReader) -> int:
    """The limit in a relay's answer; 0 stands for none in libp2p, and a relay of p2pd always has one."""
    answer = Empty()
    await read_pbmsg_safe(reader, answer)
    limit = Empty.FromString(_fields(answer)[LIMIT_FIELD])
    return int(_fields(limit)[DATA_FIELD])


def _fields(message: Empty) -> dict[int, Any]:
    """The values of a message by the numbers of its fields: its type is in no library that hivemind needs."""
    return {each.field_number: each.data for each in UnknownFieldSet(message)}


def start_relaying(
    make: Callable[[dict[str, Any]], hivemind.DHT], ask: Callable[[hivemind.DHT], int] = data_limit
) -> hivemind.DHT:
    """The DHT that `make` starts with the given options, started again while libp2p's own limits count.

    `ask` is as `data_limit`. If it fails, or too many starts were in vain, the seed relays little, which is better than none.
    """
    _prepare()
    options = {"force_reachability": "skep-relay"}
    for _ in range(STARTS):
        dht = make(options)
        try:
            if ask(dht) >= DATA_LIMIT:
                return dht
        except Exception as error:  # noqa: BLE001 - whatever p2pd says
            logger.warning("what this seed relays is not known: %r", error)
            return dht
        dht.shutdown()
    logger.warning("this seed relays at most 128 KiB for each connection")
    return make(options)


def through(peers: Sequence[str]) -> dict[str, Any]:
    """Options of a DHT that others reach through any of `peers` (multiaddresses) that relays."""
    _prepare()
    return {"force_reachability": "skep-relayed", "use_auto_relay": True, "trusted_relays": list(peers)}


def start_relayed(make: Callable[[], hivemind.DHT]) -> hivemind.DHT:
    """The DHT that `make` starts with the options of `through`.

    p2pd's search for a relay dials it while p2pd dials its first peers, which are the same: sometimes both dials fail, and
    p2pd ends with NO_BOOTSTRAP although the peers answer. Then `make` is called again. Raises what `make` raises.
    """
    for _ in range(RELAYED_STARTS - 1):
        try:
            return make()
        except Exception as error:
            if NO_BOOTSTRAP not in f"{error} {error.__cause__}":
                raise
    return make()


def is_relayed(dht: hivemind.DHT) -> bool:
    """Whether a relay has taken this peer. Raises TimeoutError if p2pd does not answer."""
    return bool(dht.run_coroutine(_is_relayed, return_future=True).result(ANSWER_SECONDS))


def becomes_relayed(dht: hivemind.DHT, within: float = TAKEN_SECONDS) -> bool:
    """As `is_relayed`, after a wait for that if any peer through which `dht` was started could be a relay."""
    until = time.monotonic() + within
    while not is_relayed(dht):
        if time.monotonic() > until or not any(map(_may_relay, map(str, dht.initial_peers or ()))):
            return False
        time.sleep(LOOK_SECONDS)
    return True


# it runs in the DHT's process, which finds it by name: that was forked after this module was imported
async def _is_relayed(_dht: hivemind.DHT, node: Any) -> bool:
    _, addresses = await node.p2p._client.identify()  # noqa: SLF001 - get_visible_maddrs raises an error for a client
    return any("p2p-circuit" in str(address) for address in addresses)


def _may_relay(address: str) -> bool:
    """libp2p tells others no address of a relay in a private network."""
    try:
        return ipaddress.ip_address(host_of(address)).is_global
    except ValueError:
        return True


def part(dht: hivemind.DHT) -> Part:
    """The relay of a peer that has one: p2pd does not return to a relay that was gone for a while."""

    def ask(_within: float) -> None:
        if not is_relayed(dht):
            raise ConnectionError

    return Part(Text("watch.relay"), lambda: False, ask)
