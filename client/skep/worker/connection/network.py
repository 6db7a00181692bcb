"""Connecting to the swarm: dialling the seeds, starting the DHT process with its p2pd, and counting bytes.

A peer that others cannot dial is reached through a seed (`relays`). If no seed relays, it becomes a client, which makes
connections and accepts none: as a listener it would slow down the others' rounds.

The DHT has to be forked before torch starts threads. All streams of averaging and state transfers go through two
functions of hivemind's P2P class; they are wrapped here, once per process tree, before the first fork. The small DHT
requests do not use them and are neither counted nor limited.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Final, Protocol

import hivemind
from hivemind.p2p import P2P

from skep.core.errors import SwarmError
from skep.core.plain_text import first_line
from skep.core.text import Text
from skep.dialling import DIAL_SECONDS, dial_one, endpoint
from skep.worker.connection import guards, reachability, relays
from skep.worker.connection.auth import Membership, guarded
from skep.worker.connection.rates import PacedReader, Rates, write_paced
from skep.worker.connection.reconnecting import keep_connected
from skep.worker.connection.unresponsive import ask_in_background

START_SECONDS: Final = 60.0
"""How long p2pd may take to start; hivemind's 15 s are not enough on a busy computer."""

_CLOCKS: Final = re.compile(r"local time must be within \d+ seconds.*local: (\d+\.\d+), peer: (\d+\.\d+)", re.DOTALL)
"""The message of hivemind's check of the clock, when it first talks to a seed."""


class Addressed(Protocol):
    """How this peer may be reached: as the options of these names in WorkerOptions, of a worker or of a script.

    `seeds` are multiaddresses to start from, besides those that a project names.
    """

    @property
    def run_folder(self) -> str: ...
    @property
    def identity_path(self) -> str: ...
    @property
    def listen_host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def client_mode(self) -> str: ...
    @property
    def map_port(self) -> bool: ...
    @property
    def seeds(self) -> Sequence[str]: ...


def put_sockets_in(folder: Path) -> None:
    """Let the sockets between hivemind and its p2pd be made in `folder`, for every P2P of this process from now on."""
    P2P._UNIX_SOCKET_PREFIX = f"/unix{folder / 'h-'}"  # noqa: SLF001 - hivemind has no other way


def reach(
    options: Addressed,
    peers: Sequence[str],
    membership: Membership | None = None,
    *,
    known: Callable[[], Sequence[str]] = tuple,
    meanwhile: Callable[[], object] = bool,
    told: Callable[[bool | None], object] = bool,
) -> hivemind.DHT:
    """Start the DHT and connect it to the swarm through any of `peers`; behind a relay, or as a client, if others cannot dial
    this peer.

    `known` returns addresses of peers to try if that fails: they are often off, and to wait for them would delay every
    join. `meanwhile` is called while the DHT's process starts; again when it starts a second time.

    `told` is called with whether others can dial this peer, as they say; None if none could tell or it did not ask, and
    then it listens.

    Raises SwarmError, which names every seed that was tried with the reason.
    """
    put_sockets_in(Path(options.run_folder))
    connect = partial(_connect, options, membership=membership)
    try:
        through_seeds = partial(connect, _answering_seeds([*peers, *options.seeds]))
        return connect_as_needed(options, through_seeds, meanwhile, told=told)
    except SwarmError as error:
        others = [address for address, failure in dial(known()).items() if not failure]
        if not others:
            raise
        try:
            return connect_as_needed(options, partial(connect, others), meanwhile, told=told)
        except SwarmError:
            raise error from None


def begin(options: Addressed) -> hivemind.DHT:
    """Start the DHT of a swarm's first peer, through which others join. Raises SwarmError."""
    put_sockets_in(Path(options.run_folder))
    return connect_as_needed(options, partial(_connect, options, (), membership=None), bool)


def _answering_seeds(seeds: Sequence[str]) -> Sequence[str]:
    """Those to which a connection can be made. Raises SwarmError if there is none, with the reason for each."""
    dialled = dial(seeds)
    alive = [address for address, failure in dialled.items() if not failure]
    if not alive:
        raise SwarmError(
            Text(
                "swarm.none_project_seed_peers_answers",
                failures=tuple(Text("swarm.seed", seed=endpoint(each), failure=why) for each, why in dialled.items()),
            ),
            Text("swarm.check_computer_internet_connection_firewall"),
        )
    return alive


def connect_as_needed(
    options: Addressed,
    connect: Callable[..., hivemind.DHT],
    meanwhile: Callable[[], object],
    *,
    find_out: Callable[[hivemind.DHT], bool | None] = reachability.find_out,
    answer_others: Callable[[hivemind.DHT], None] = reachability.answer_others,
    becomes_relayed: Callable[[hivemind.DHT], bool] = relays.becomes_relayed,
    told: Callable[[bool | None], object] = bool,
) -> hivemind.DHT:
    """Call `connect` with the `client_mode` of the options. If that is automatic and `find_out` says that others cannot
    dial this peer, call it again: behind a relay, or as a client if `becomes_relayed` says that there is none.

    A peer that listens on more than loopback answers others' reachability requests too.
    """
    dht = connect(client_mode=options.client_mode == "on", meanwhile=meanwhile)
    # a peer on loopback need not be reachable from outside
    if options.listen_host.startswith("127.") or options.client_mode == "on":
        return dht
    found = find_out(dht) if options.client_mode == "automatic" else None
    told(found)
    if found is False:
        dht.shutdown()
        dht = relays.start_relayed(partial(connect, client_mode=False, relayed=True))
        if not becomes_relayed(dht):
            dht.shutdown()
            return connect(client_mode=True)
    answer_others(dht)
    return dht


def _connect(
    options: Addressed,
    alive: Sequence[str],
    *,
    membership: Membership | None,
    client_mode: bool,
    relayed: bool = False,
    meanwhile: Callable[[], object] = bool,
) -> hivemind.DHT:
    """A peer in client mode listens nowhere; one that is `relayed`, behind any of `alive` too. Raises SwarmError."""
    # hivemind forwards unknown options to p2pd as arguments
    listening: dict[str, Any] = (
        {"no_listen": True} if client_mode else {"host_maddrs": [f"/ip4/{options.listen_host}/tcp/{options.port}"]}
    )
    with _as_swarm_error(alive), guarded(membership, map_port=options.map_port) as guard:
        dht = hivemind.DHT(
            initial_peers=list(alive),
            start=True,
            await_ready=False,
            identity_path=options.identity_path,
            check_if_identity_free=False,  # the engine's lock ensures one worker per home; the check costs seconds
            startup_timeout=START_SECONDS,
            client_mode=client_mode,
            **listening,
            **(relays.through(alive) if relayed else {}),
            **guard,
        )
    meanwhile()
    with _as_swarm_error(alive):
        dht.wait_until_ready(START_SECONDS)
    dht.run_coroutine(ask_in_background, return_future=True)
    dht.run_coroutine(keep_connected, return_future=True)
    if membership:
        membership.publish(dht)
    return dht


@contextmanager
def _as_swarm_error(alive: Sequence[str]) -> Iterator[None]:
    """Raise SwarmError, with a message for the user, if joining fails; `alive` are addresses that answered before."""
    try:
        yield
    except Exception as error:
        if (skew := clock_skew(str(error))) is not None:
            title = Text("swarm.clock_ahead" if skew > 0 else "swarm.clock_behind", seconds=abs(skew))
            raise SwarmError(title, Text("swarm.set_clock")) from error
        title = Text("swarm.seed_peers_answer_but_joining", reason=first_line(error))
        hint = Text("swarm.try_again_later_if_stays")
        if relays.NO_BOOTSTRAP in str(error):
            title = Text("swarm.what_answers_not_seed_peer", names=tuple(map(endpoint, alive)))
            hint = Text("swarm.may_have_been_restarted_under")
        raise SwarmError(title, hint) from error


def clock_skew(error: str) -> float | None:
    """Seconds by which this computer's clock is ahead of the seed's (negative: behind), if hivemind refused for that."""
    found = _CLOCKS.search(error)
    return float(found[1]) - float(found[2]) if found else None


def dial(addresses: Sequence[str], within: float = DIAL_SECONDS) -> dict[str, Text]:
    """Why each address does not answer `within` seconds, all tried in parallel; empty if it does or cannot be tried."""
    with ThreadPoolExecutor(max_workers=min(16, len(addresses) or 1)) as pool:
        return dict(zip(addresses, pool.map(partial(dial_one, within=within), addresses), strict=True))


def _counter() -> Synchronized[int]:
    return mp.Value("Q", 0)


@dataclass(frozen=True)
class ByteCounters:
    """Bytes since the start of the worker, shared by it and the processes it forks."""

    sent: Synchronized[int] = field(default_factory=_counter)
    received: Synchronized[int] = field(default_factory=_counter)


def add(counter: Synchronized[int], size: int) -> None:
    with counter.get_lock():
        counter.value += size


def watch_streams(traffic: ByteCounters, rates: Rates) -> None:
    """Count every stream frame of this process and its later forks into `traffic`, and keep them within `rates`."""
    guards.install()
    send_raw, receive_raw = P2P.send_raw_data, P2P.receive_raw_data

    async def send_raw_data(data: bytes, writer: asyncio.StreamWriter, *, chunk_size: int = 2**16) -> None:
        if rates.up.rate:
            writer.write(len(data).to_bytes(P2P.HEADER_LEN, P2P.BYTEORDER))
            await write_paced(data, writer, rates.up)
        else:
            await send_raw(data, writer, chunk_size=chunk_size)
        add(traffic.sent, len(data) + P2P.HEADER_LEN)

    async def receive_raw_data(reader: asyncio.StreamReader) -> bytes:
        data: bytes = await receive_raw(PacedReader(reader, rates.down))
        add(traffic.received, len(data) + P2P.HEADER_LEN)
        return data

    P2P.send_raw_data = staticmethod(send_raw_data)
    P2P.receive_raw_data = staticmethod(receive_raw_data)
