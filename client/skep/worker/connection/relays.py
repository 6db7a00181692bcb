"""Relays of libp2p: a peer that nobody can dial is reached through a seed, to which it keeps a connection open.

hivemind starts p2pd so that it looks for relays in the background, which takes minutes, and does not pass on the options
that a relay needs. `relaying` and `through` add to hivemind's choices of `force_reachability`; both are for a DHT of this
process that is started after the call.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence
from typing import Any, Final

import hivemind
from hivemind.p2p import P2P

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

_OPTIONS: Final[dict[str, dict[str, int]]] = {
    # by default p2pd breaks a relayed connection off before 200 MB have passed, and has two buffers of 16 MiB for each
    "skep-relay": {
        "forceReachabilityPublic": 1,
        "relayDataLimit": 1 << 50,
        "relayMaxCircuits": 128,
        "relayBufferSize": 1 << 18,
    },
    "skep-relayed": {"forceReachabilityPrivate": 1, "relayDiscovery": 0},
}


def _prepare() -> None:
    P2P.FORCE_REACHABILITY_MAPPING.update(_OPTIONS)


def relaying() -> dict[str, Any]:
    """Options of a DHT that relays for others."""
    _prepare()
    return {"force_reachability": "skep-relay"}


def through(peers: Sequence[str]) -> dict[str, Any]:
    """Options of a DHT that others reach through any of `peers` (multiaddresses) that relays."""
    _prepare()
    return {"force_reachability": "skep-relayed", "use_auto_relay": True, "trusted_relays": list(peers)}


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
