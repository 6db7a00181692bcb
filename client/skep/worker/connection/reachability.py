"""Checking whether other peers can dial this one: connected peers are asked to dial back to the address they see.

Every skep peer that listens answers such requests; stock hivemind peers do not, and libp2p's AutoNAT is not available
through p2pd. A peer dials only the requester, at the connection's address, so that it cannot be used to scan other
computers. The coroutines run in the DHT's process, which has to be forked after this module was imported.

On the wire, in a stream of the libp2p protocol PROTOCOL: one byte with the number of ports, two bytes each (big
endian); the answer is one byte, a Verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any, Final

import hivemind
from hivemind.p2p import PeerID

PROTOCOL: Final = "skep-dial-back-1"
DIAL_SECONDS: Final = 3.0
"""How long the dialled peer may take; a firewall that drops packets costs all of it, once per join."""
ANSWER_SECONDS: Final = 6.0
MOST_PORTS: Final = 4
MOST_ASKED: Final = 8
MOST_DIALS: Final = 8
"""Simultaneous dials by one peer."""
GREETING: Final = b"\x13/multistream/1.0.0\n"
"""The first bytes that libp2p sends on any connection (multistream-select specification)."""


class Verdict(enum.IntFlag):
    """Result of a peer that dialled back: whether we answered, and whether it sees us at a public address."""

    ANSWERED = 1
    FROM_OUTSIDE = 2


def reachable(verdicts: Iterable[Verdict]) -> bool | None:
    """Whether others can dial us; None when no peer could tell.

    Peers that see us at a public address take precedence over those in our own network, which need no router to reach
    us.
    """
    found = list(verdicts)
    telling = [verdict for verdict in found if Verdict.FROM_OUTSIDE in verdict] or found
    return any(Verdict.ANSWERED in verdict for verdict in telling) if telling else None


def find_out(dht: hivemind.DHT, seeds: Sequence[str] | None = None) -> bool | None:
    """Ask the peers `dht` is connected to; as `reachable`. Takes at most ANSWER_SECONDS and a little.

    `seeds` are multiaddresses of peers to ask first, None those through which `dht` was started.
    """
    ask = functools.partial(_ask_all, seeds=dht.initial_peers or () if seeds is None else seeds)
    answer = dht.run_coroutine(ask, return_future=True)
    try:
        return reachable(Verdict(number) for number in answer.result(ANSWER_SECONDS + DIAL_SECONDS))
    except TimeoutError:
        answer.cancel()
        return None


def answer_others(dht: hivemind.DHT) -> None:
    """Start answering requests to dial back."""
    dht.run_coroutine(_serve)


# --- asking


async def _ask_all(_dht: hivemind.DHT, node: Any, seeds: Sequence[Any]) -> list[int]:
    ports = _ports(await node.p2p.get_visible_maddrs(latest=True))
    peers = [PeerID.from_base58(str(address).rpartition("/p2p/")[2]) for address in seeds]
    others = list(dict.fromkeys([*peers, *node.protocol.routing_table.uid_to_peer_id.values()]))
    answers = await asyncio.gather(*(_ask(node.p2p, peer, ports) for peer in others[:MOST_ASKED]))
    return [answer for answer in answers if answer is not None]


async def _ask(p2p: Any, peer: PeerID, ports: Sequence[int]) -> int | None:
    """One peer's verdict; None when it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            _, reader, writer = await p2p.call_binary_stream_handler(peer, PROTOCOL)
            with contextlib.closing(writer):
                writer.write(bytes([len(ports)]) + b"".join(port.to_bytes(2, "big") for port in ports))
                await writer.drain()
                return int((await reader.readexactly(1))[0])
    except Exception:  # noqa: BLE001 - whatever p2pd says of a peer that does not know the protocol, or is gone
        return None


def _ports(addresses: Iterable[Any]) -> list[int]:
    """The TCP ports of our visible addresses."""
    parts = [str(address).split("/") for address in addresses]
    return list(dict.fromkeys(int(each[4]) for each in parts if each[3] == "tcp"))[:MOST_PORTS]


# --- answering


async def _serve(_dht: hivemind.DHT, node: Any) -> None:
    slots = asyncio.Semaphore(MOST_DIALS)

    async def answer(stream: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS), slots:
                host = _seen_at(str(stream.addr))
                ports = await _read_ports(reader)
                if host is not None:
                    writer.write(bytes([await _verdict(host, ports)]))
                    await writer.drain()

    await node.p2p.add_binary_stream_handler(PROTOCOL, answer)


def _seen_at(address: str) -> str | None:
    """The IP address of the requester; None through a relay, which has another address."""
    match address.split("/"):
        case ["", "ip4" | "ip6", host, *rest] if "p2p-circuit" not in rest:
            return host
        case _:
            return None


async def _read_ports(reader: asyncio.StreamReader) -> list[int]:
    count = (await reader.readexactly(1))[0]
    raw = await reader.readexactly(2 * min(count, MOST_PORTS))
    return [int.from_bytes(raw[place : place + 2], "big") for place in range(0, len(raw), 2)]


async def _verdict(host: str, ports: Sequence[int]) -> Verdict:
    outside = Verdict.FROM_OUTSIDE if ipaddress.ip_address(host).is_global else Verdict(0)
    dialled = await asyncio.gather(*(answers(host, port) for port in ports))
    return outside | (Verdict.ANSWERED if any(dialled) else Verdict(0))


async def connected(p2p: Any) -> list[str]:
    """The addresses of open connections, as p2pd takes them, as multiaddresses with the peer's id at the end."""
    return [f"{address}/p2p/{each.peer_id}" for each in await p2p.list_peers() for address in each.addrs]


def place_of(address: str) -> tuple[str, int] | None:
    """Host and TCP port at which the peer of a multiaddress can be dialled directly; None through a relay, or without TCP."""
    match address.split("/"):
        case ["", _, host, "tcp", port, *between, "p2p", _] if "p2p-circuit" not in between:
            return host, int(port)
        case _:
            return None


async def answering(addresses: Iterable[str]) -> list[str]:
    """Those of the multiaddresses at which libp2p answers."""
    places = {each: place for each in addresses if (place := place_of(each))}
    answered = await asyncio.gather(*(answers(*place) for place in places.values()))
    return [each for each, answer in zip(places, answered, strict=True) if answer]


async def answers(host: str, port: int) -> bool:
    """Whether something that speaks libp2p answers at host and port."""
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            with contextlib.closing(writer):
                writer.write(GREETING)
                await writer.drain()
                return await reader.readexactly(len(GREETING)) == GREETING
    except (OSError, EOFError, TimeoutError):
        return False
