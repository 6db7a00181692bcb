"""The process that asks peers for the connection doctor, `python -m skep.worker.probe`.

It has an identity of its own, made at each start, so that a worker of this computer is not disturbed. It reads one line,
core.findings.Questions, prints one finding a line, and ends when it has said all, or when its stdin closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median_low
from typing import Any, Final

import msgspec

from skep.core.findings import Check, Finding, Questions, State, clock_finding, seed_down, to_line
from skep.core.plain_text import first_line
from skep.core.project.addresses import host_of
from skep.core.text import NOTHING, Text
from skep.dialling import endpoint
from skep.worker.process import processes

RELAY_SECONDS: Final = 3.0
"""How long a seed may take to say whether it would relay."""
RESERVED: Final = 5, 100
"""The field of a relay's answer with its status, and that for yes, by libp2p's specification "circuit v2"."""


def main() -> None:
    """Answer the questions on stdin. In every case end this process and all processes it has started."""
    processes.tie_to_this_process()
    processes.use_fork()
    tell = _own_stdout()
    questions = msgspec.json.decode(sys.stdin.buffer.readline(), type=Questions)
    threading.Thread(target=_end_with_stdin, args=[questions], name="stdin", daemon=True).start()
    try:
        for finding in answers(questions):
            tell(to_line(finding))
    except Exception:  # noqa: BLE001 - stderr is the log, and may be gone with the front end
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        _end(questions)


def _own_stdout() -> Callable[[str], None]:
    """Writes a line to stdout, for findings alone: what libraries print goes to stderr.

    Forked processes do not hold the pipe open, so that the front end sees the end of this process.
    """
    kept = os.dup(1)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=partial(os.close, kept))

    def tell(line: str) -> None:
        left = memoryview(f"{line}\n".encode())
        while left:
            left = left[os.write(kept, left) :]

    return tell


def _end_with_stdin(questions: Questions) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end(questions)


def _end(questions: Questions) -> None:
    processes.kill_descendants()
    shutil.rmtree(questions.run_folder, ignore_errors=True)
    os._exit(0)


def answers(questions: Questions) -> Iterator[Finding]:
    """Every finding when it is known: the seeds one by one, the swarm, and whether others can dial this computer.

    If no seed can be met, remembered peers are asked in their place, as a join goes through them.
    """
    from skep.worker.connection import network, reachability, seeds  # noqa: PLC0415 - seconds, and before the fork

    network.put_sockets_in(Path(questions.run_folder))
    try:
        dht = _start(questions)
        seeds.expect_records(dht, questions.run_id)
    except Exception as error:  # noqa: BLE001 - whatever hivemind raises when p2pd does not start
        traceback.print_exc()
        found = Text("doctor.p2pd_failed", reason=first_line(error))
        yield Finding(Check.HANDSHAKE, State.FAIL, found, Text("doctor.run_self_test"))
        return
    named = seeds.by_identity(questions.seeds)
    known = seeds.by_identity(questions.known)
    down = seed_down(others=len(named) > 1, known=bool(known))
    met: dict[str, Sequence[str]] = {}
    for peer, greeting in _greetings(dht, named, questions):
        yield from greeted(", ".join(map(endpoint, named[peer])), greeting, down)
        if not greeting.failure:
            met[peer] = named[peer]
    if questions.is_running:
        return
    if not met:
        answered = {peer: each for peer, each in _greetings(dht, known, questions) if not each.failure}
        met = {peer: known[peer] for peer in answered}
        yield from remembered(answered.values())
    look = partial(seeds.peers_of, run_id=questions.run_id, patience=questions.patience)
    peers = None if questions.invited or not met else dht.run_coroutine(look, return_future=True)
    asking = partial(takes, relays=[peer for peer, where in met.items() if any(map(may_relay, where))])
    yield from in_reach(
        questions,
        met,
        lambda: reachability.find_out(dht, [where[0] for where in met.values()]),
        lambda: dht.run_coroutine(asking, return_future=True).result(questions.within),
    )
    yield swarm(questions, met, None if peers is None else peers.result(questions.within), known)


def _start(questions: Questions) -> Any:
    """A DHT node that knows no peer yet, and listens as the worker would."""
    import hivemind  # noqa: PLC0415 - as above

    from skep.worker.connection.auth import guarded  # noqa: PLC0415 - as above

    client = questions.client_mode == "on"
    where = f"/ip4/{questions.listen_host}/tcp/{questions.port}"
    listening: dict[str, Any] = {"no_listen": True} if client else {"host_maddrs": [where]}
    with guarded(None, map_port=questions.map_port) as guard:
        return hivemind.DHT(start=True, startup_timeout=questions.within, client_mode=client, **listening, **guard)


def _greetings(dht: Any, peers: Mapping[str, Sequence[str]], questions: Questions) -> Iterator[tuple[str, Any]]:
    """Each of `peers`, ids with addresses, with its seeds.Greeting; all are greeted at the same time."""
    from skep.worker.connection import seeds  # noqa: PLC0415 - as above

    begun = [
        (
            peer,
            dht.run_coroutine(
                partial(seeds.greet, peer=peer, addresses=where, patience=questions.patience), return_future=True
            ),
        )
        for peer, where in peers.items()
    ]
    for peer, coming in begun:
        yield peer, coming.result(questions.within)


def greeted(where: str, greeting: Any, down: tuple[State, Text]) -> Iterator[Finding]:
    """The findings about one seed; `down` is how bad it is if it fails, and what to do."""
    state, advice = down
    if greeting.is_other:
        found, advice = Text("doctor.other_identity", seed=where), Text("doctor.newer_manifest")
    elif greeting.failure:
        found = Text("doctor.no_handshake", seed=where, reason=greeting.failure)
    else:
        found = Text("doctor.handshake_made", seed=where, milliseconds=greeting.seconds * 1000)
        state, advice = State.OK, NOTHING
    yield Finding(Check.HANDSHAKE, state, found, advice, where, greeting.seconds)
    if greeting.ahead is not None:
        yield clock_finding(where, greeting.ahead, greeting.uncertain)


def remembered(greetings: Collection[Any]) -> Iterator[Finding]:
    """The findings about the remembered peers that were met. Their addresses, which are people's, are not said."""
    if greetings:
        yield Finding(Check.HANDSHAKE, State.OK, Text("doctor.known_peers_met", count=len(greetings)))
    clocks = [(each.ahead, each.uncertain) for each in greetings if each.ahead is not None]
    if clocks:
        yield clock_finding(Text("doctor.the_known_peers"), *median_low(clocks))


def swarm(questions: Questions, met: Collection[str], peers: int | None, known: Collection[str]) -> Finding:
    """Whether those `met` lead to the swarm of this run, in which `peers` have a record; `known` were remembered."""
    if not met:
        found = Text("doctor.nobody_met") if known else Text("doctor.no_seed_met")
        return Finding(Check.SWARM, State.FAIL, found, Text("doctor.check_connection"))
    if questions.invited:
        return Finding(Check.SWARM, State.SKIPPED, Text("doctor.swarm_invited"))
    if not peers:
        found = Text("doctor.swarm_empty", run_id=questions.run_id)
        return Finding(Check.SWARM, State.WARN, found, Text("doctor.swarm_empty_advice"))
    return Finding(Check.SWARM, State.OK, Text("doctor.swarm_found", count=peers))


def in_reach(
    questions: Questions, met: Collection[str], find_out: Callable[[], bool | None], relays: Callable[[], bool]
) -> Iterator[Finding]:
    """Whether other peers can dial this computer, and what the worker will make of it."""
    if questions.client_mode == "on":
        found = Text("doctor.client_by_setting", setting="network.client_mode")
        yield Finding(Check.REACHABILITY, State.OK, found)
        return
    if questions.listen_host.startswith("127."):
        yield Finding(Check.REACHABILITY, State.OK, Text("doctor.loopback_only"))
        return
    advice = Text("doctor.forward_port", setting="network.port", mapping="network.map_port")
    reached = find_out() if met else None
    if reached is None:
        yield Finding(Check.REACHABILITY, State.SKIPPED, Text("doctor.nobody_can_tell"))
    elif reached:
        yield Finding(Check.REACHABILITY, State.OK, Text("doctor.is_reachable"))
    elif questions.client_mode == "off":
        found = Text("doctor.unreachable_listener", setting="network.client_mode")
        yield Finding(Check.REACHABILITY, State.WARN, found, advice)
    elif relays():
        yield Finding(Check.REACHABILITY, State.OK, Text("doctor.becomes_relayed"), advice)
    else:
        yield Finding(Check.REACHABILITY, State.OK, Text("doctor.becomes_mere_client"), advice)


def may_relay(address: str) -> bool:
    """Whether p2pd uses a relay at this multiaddress: not in a private network."""
    try:
        return ipaddress.ip_address(host_of(address)).is_global
    except ValueError:
        return True


# it runs in the DHT's process, which was forked from this one
async def takes(_dht: Any, node: Any, *, relays: Sequence[str]) -> bool:
    """Whether one of these peers (base58 ids) would relay for this computer: each is asked as p2pd asks it for a worker."""
    for relay in relays:
        with contextlib.suppress(Exception):  # whatever p2pd says of a peer that does not relay, or is gone
            async with asyncio.timeout(RELAY_SECONDS):
                if await _accepts(node.p2p, relay):
                    return True
    return False


async def _accepts(p2p: Any, relay: str) -> bool:
    from google.protobuf.empty_pb2 import Empty  # noqa: PLC0415 - loaded with hivemind
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 - as above
    from hivemind.p2p import PeerID  # noqa: PLC0415 - as above
    from hivemind.p2p.p2p_daemon_bindings.utils import read_pbmsg_safe  # noqa: PLC0415 - as above

    from skep.worker.connection.relays import HOP, RESERVE  # noqa: PLC0415 - as above

    _, reader, writer = await p2p.call_binary_stream_handler(PeerID.from_base58(relay), HOP)
    with contextlib.closing(writer):
        writer.write(RESERVE)
        await writer.drain()
        answer = Empty()
        await read_pbmsg_safe(reader, answer)
    return any((each.field_number, each.data) == RESERVED for each in UnknownFieldSet(answer))


if __name__ == "__main__":
    main()
