"""Trying single seeds: the libp2p handshake, their clock, and what their DHT knows of a run.

The coroutines run in the DHT's process, which has to be forked after this module was imported.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import hivemind
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import SchemaValidator
from hivemind.optim.progress_tracker import TrainingProgressSchema
from hivemind.p2p import PeerID
from hivemind.utils.multiaddr import Multiaddr

from skep.core.plain_text import first_line, plain
from skep.worker.connection.clocks import compare

_REASON: Final = re.compile(r"\* \[[^\]]*\] (.*)")
_BACKOFF: Final = "dial backoff"
"""p2pd's reason for an address that it has tried a moment ago, where the reason was another."""
_OTHER_IDENTITY: Final = "peer id mismatch"


@dataclass(frozen=True)
class Greeting:
    """The result of one seed's handshake, which took `seconds`; `failure` is p2pd's reason, "" if there is none.

    `ahead` is by how many seconds our clock is ahead of the seed's, known to `uncertain` seconds; None where the DHT
    does not answer us, as in a swarm by invitation.
    """

    failure: str
    seconds: float
    is_other: bool = False
    """Another peer than the one that the address names answers there."""
    ahead: float | None = None
    uncertain: float = 0.0


def by_identity(addresses: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The addresses by their peer id: p2pd tries all addresses that it knows of a peer."""
    found: dict[str, list[str]] = {}
    for address in addresses:
        found.setdefault(address.rpartition("/p2p/")[2], []).append(address)
    return found


async def greet(_dht: hivemind.DHT, node: Any, peer: str, addresses: Sequence[str], patience: float) -> Greeting:
    """Connect to one peer at any of its addresses, which includes the check of its identity, and ping its DHT.

    Each of the two takes at most `patience` seconds.
    """
    peer_id = PeerID.from_base58(peer)
    begun = time.monotonic()
    try:
        async with asyncio.timeout(patience):
            where = [Multiaddr(each.rpartition("/p2p/")[0]) for each in addresses]
            await node.p2p._client.connect(peer_id, where)  # noqa: SLF001 - hivemind's P2P connects to bootstrap peers only
    except TimeoutError:
        return Greeting("no answer", time.monotonic() - begun)
    except Exception as error:  # noqa: BLE001 - whatever p2pd says
        return Greeting(why(first_line(error), str(error)), time.monotonic() - begun, _OTHER_IDENTITY in str(error))
    took = time.monotonic() - begun
    ahead, uncertain = await compare(node, peer_id, patience)
    if ahead is not None:
        await node.protocol.call_ping(peer_id)  # and take the peer into the routing table
    return Greeting("", took, ahead=ahead, uncertain=uncertain)


def why(first: str, said: str) -> str:
    """The reason in p2pd's message: that of the last address that was really tried, or its `first` line."""
    reasons = [each for each in _REASON.findall(said) if each != _BACKOFF]
    return plain(reasons[-1] if reasons else first)


def expect_records(dht: hivemind.DHT, run_id: str) -> None:
    """Let `dht` check and read the signed progress records of this run; without that, a look-up never ends."""
    dht.add_validators([SchemaValidator(TrainingProgressSchema, prefix=run_id), RSASignatureValidator()])


async def peers_of(_dht: hivemind.DHT, node: Any, run_id: str, patience: float, without: Collection[bytes] = ()) -> int:
    """How many peers, beside those with the ids in `without`, have a progress record of this run, as the DHT knows.

    Takes at most `patience` seconds.
    """
    async with asyncio.timeout(patience):
        found = await node.get(f"{run_id}_progress", latest=True)
    records = found.value if found is not None and isinstance(found.value, dict) else {}
    values = [each.value for each in records.values() if each.value is not None]
    return sum(not without or value["peer_id"] not in without for value in values)
