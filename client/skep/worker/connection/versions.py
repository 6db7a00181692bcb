"""Asking the project's seeds for the version of skep's protocol that they have, which decides the run id.

Peers of two versions are in two swarms, so that an older skep would find nobody, and train alone. Only the seeds that the
manifest names are asked, directly: what other peers say could keep volunteers away. Stock seeds do not answer. The
coroutines run in the DHT's process, which has to be forked after this module was imported.

On the wire, in a stream of the libp2p protocol NAME, which all versions have to answer: two bytes (big endian), the
version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import hivemind
from hivemind.p2p import PeerID

from skep.core.errors import SkepError
from skep.core.project.manifest import PROTOCOL
from skep.core.text import Text

NAME: Final = "skep-protocol-version"
ANSWER_SECONDS: Final = 5.0


def check(dht: hivemind.DHT, peers: Sequence[str], own: int = PROTOCOL) -> None:
    """Raise SkepError, which no retry can mend, if all seeds in `peers` (multiaddresses) that answer are newer."""
    answer = dht.run_coroutine(partial(_ask_all, peers=peers), return_future=True)
    try:
        told = answer.result(2 * ANSWER_SECONDS)
    except TimeoutError:
        answer.cancel()
        return
    if is_too_old(own, told):
        raise SkepError(Text("swarm.update_skep_to_join"), Text("swarm.project_moved_on_to_newer_protocol"))


def is_too_old(own: int, told: Iterable[int]) -> bool:
    """Whether seeds told their versions, and all have a newer one."""
    return min(told, default=own) > own


def answer_others(dht: hivemind.DHT, own: int = PROTOCOL) -> None:
    """Start answering peers that ask for the version."""
    dht.run_coroutine(partial(_serve, own=own))


async def _ask_all(dht: hivemind.DHT, node: Any, *, peers: Sequence[str]) -> list[int]:
    # the DHT was given those that accept connections: to wait for another would delay every join
    seeds = {_id(address) for address in peers} & {_id(str(address)) for address in dht.initial_peers or ()}
    answers = await asyncio.gather(*(_ask(node.p2p, PeerID.from_base58(seed)) for seed in seeds))
    return [answer for answer in answers if answer is not None]


def _id(address: str) -> str:
    return address.rpartition("/p2p/")[2]


async def _ask(p2p: Any, seed: PeerID) -> int | None:
    """The seed's version; None when it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            _, reader, writer = await p2p.call_binary_stream_handler(seed, NAME)
            with contextlib.closing(writer):
                return int.from_bytes(await reader.readexactly(2), "big")
    except Exception:  # noqa: BLE001 - whatever p2pd says of a peer that does not know the protocol, or is gone
        return None


async def _serve(_dht: hivemind.DHT, node: Any, *, own: int) -> None:
    async def answer(_stream: Any, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            writer.write(own.to_bytes(2, "big"))
            await writer.drain()

    await node.p2p.add_binary_stream_handler(NAME, answer)
