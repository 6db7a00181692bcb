"""Reaching the swarm: the seeds tried one by one, then the DHT process with its p2pd, in a private folder.

A peer that nobody can dial becomes a client, which makes connections and accepts none: as a listener it would slow down
every round of the others.

It must not build models or averagers; it comes first because the DHT has to be forked before torch is busy.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hivemind
from hivemind.p2p import P2P

from skep.core.errors import SwarmError
from skep.core.messages import StartTraining
from skep.worker import reachability
from skep.worker.membership import Membership, guarded

DIAL_SECONDS: Final = 5.0
START_SECONDS: Final = 60.0
"""How long p2pd may take to start; hivemind's 15 s are not enough on a busy computer."""

NO_BOOTSTRAP: Final = "failed to connect to bootstrap peers"
"""What p2pd says when it reached no seed under the identity in its address."""


@dataclass(frozen=True)
class Seed:
    """One seed address and, when it could not be reached, why not."""

    address: str
    failure: str = ""


def reach(
    start: StartTraining,
    peers: Sequence[str],
    membership: Membership | None = None,
    *,
    meanwhile: Callable[[], object] = bool,
) -> hivemind.DHT:
    """Start the DHT and connect it to the swarm through any of `peers`, as a client where nobody can dial us.

    `meanwhile` is done while the DHT's process starts.

    When no peer can tell whether we can be dialled, we listen.

    Raises SwarmError that names every seed that was tried and what happened.
    """
    P2P._UNIX_SOCKET_PREFIX = f"/unix{Path(start.run_folder) / 'h-'}"  # noqa: SLF001 - hivemind has no other way
    seeds = dial([*peers, *start.seeds])
    alive = [seed.address for seed in seeds if not seed.failure]
    if not alive:
        raise SwarmError(
            "None of the project's seed peers answers: "
            + "; ".join(f"{endpoint(seed.address)} {seed.failure}" for seed in seeds)
            + ".",
            "Check this computer's internet connection or firewall, or try again later. "
            "Another address can be given in SKEP_PEERS.",
        )
    dht = _connect(start, alive, membership, client_mode=start.client_mode == "on", meanwhile=meanwhile)
    if all(map(is_local, start.listen)) or start.client_mode == "on":
        return dht
    if start.client_mode == "automatic" and reachability.find_out(dht) is False:
        dht.shutdown()
        return _connect(start, alive, membership, client_mode=True)
    reachability.answer_others(dht)
    return dht


def _connect(
    start: StartTraining,
    alive: Sequence[str],
    membership: Membership | None,
    *,
    client_mode: bool,
    meanwhile: Callable[[], object] = bool,
) -> hivemind.DHT:
    """A peer in client mode listens nowhere. Raises SwarmError."""
    # hivemind forwards what it does not know to p2pd's arguments
    listening: dict[str, Any] = {"no_listen": True} if client_mode else {"host_maddrs": list(start.listen)}
    try:
        with guarded(membership) as guard:
            dht = hivemind.DHT(
                initial_peers=list(alive),
                start=True,
                await_ready=False,
                identity_path=start.identity_path,
                check_if_identity_free=False,  # the engine's lock ensures one worker per home; the check costs seconds
                startup_timeout=START_SECONDS,
                client_mode=client_mode,
                **listening,
                **guard,
            )
    except (FutureTimeout, Exception) as error:
        raise _not_joined(error, alive) from error
    meanwhile()
    try:
        dht.wait_until_ready(START_SECONDS)
    except (FutureTimeout, Exception) as error:
        raise _not_joined(error, alive) from error
    if membership:
        membership.publish(dht)
    return dht


def is_local(address: str) -> bool:
    """Whether a multiaddress to listen on is this computer's loopback, which nobody outside need reach."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))


def _not_joined(error: BaseException, alive: Sequence[str]) -> SwarmError:
    """`alive` are the addresses that answered before."""
    if NO_BOOTSTRAP in str(error):
        return SwarmError(
            f"What answers at {', '.join(map(endpoint, alive))} is not the seed peer that the project names there.",
            "It may have been restarted under another identity: look for a newer manifest, or try again later.",
        )
    return SwarmError(
        f"The seed peers answer, but joining the swarm through them failed: {first_line(error)}.",
        "Try again later. If it stays like this, look for a newer manifest.",
    )


def dial(addresses: Sequence[str]) -> list[Seed]:
    """Try every address at once, each for at most DIAL_SECONDS; addresses that cannot be tried count as reachable."""
    with ThreadPoolExecutor(max_workers=min(16, len(addresses) or 1)) as pool:
        failures = pool.map(dial_one, addresses)
        return [Seed(address, failure) for address, failure in zip(addresses, failures, strict=True)]


def dial_one(address: str) -> str:
    """Why the TCP address in a multiaddress does not answer, in words; empty when it does or is not TCP."""
    match address.split("/"):
        case [_, _, host, "tcp", port, *_]:
            return dial_tcp(host, int(port))
        case _:
            return ""


def dial_tcp(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), DIAL_SECONDS):
            return ""
    except ConnectionRefusedError:
        return "refuses the connection"
    except TimeoutError:
        return f"did not answer within {DIAL_SECONDS:.0f} s"
    except (socket.gaierror, UnicodeError):  # the latter for a label that is too long for any name
        return "is a name that could not be found"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"


def endpoint(address: str) -> str:
    """host:port of a multiaddress, for words."""
    match address.split("/"):
        case [_, _, host, _, port, *_]:
            return f"{host}:{port}"
        case _:
            return address


def first_line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")[:200]
