"""The checks of the network that need no peer: names, the seeds' ports, peers that are remembered, the data server."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from urllib3.util import Retry

from skep.adapters.net.web import Answer, Patience, Stop, Web
from skep.core.errors import SkepError
from skep.core.findings import Check, Finding, State, clock_finding
from skep.core.project.addresses import host_of, is_global, is_loopback
from skep.core.project.manifest import VerifiedProject
from skep.core.project.shards import INDEX_BYTES_LIMIT, parse_index, shard_address
from skep.core.text import NOTHING, Text
from skep.dialling import dial_one, endpoint
from skep.services.doctor.case import Case, Task

Dial = Callable[[str], Text]
"""Why a multiaddress does not answer; empty if it does."""
PATIENCE: Final = Patience(connect_seconds=6.0, read_seconds=6.0, retry=Retry(0))
HALF_A_SECOND: Final = 0.5
"""A server tells the time in whole seconds."""

_FAMILIES: Final = {
    "dns": socket.AF_UNSPEC,
    "dns4": socket.AF_INET,
    "dns6": socket.AF_INET6,
}


# --- names


def names(case: Case) -> Iterator[Task]:
    """One task for each name that has to be looked up."""
    wanted: dict[str, int] = {}
    for address in case.addresses:
        _, kind, host, *_ = address.split("/")
        if kind in _FAMILIES:
            wanted.setdefault(host, _FAMILIES[kind])
    if (server := _server_name(case)) is not None:
        wanted.setdefault(server, socket.AF_UNSPEC)
    for host, family in wanted.items():
        unknown = State.FAIL if host == server else case.seed_down[0]
        yield Task(Check.NAME, partial(name, host, family, unknown), host)


def _server_name(case: Case) -> str | None:
    """The name of the data server; None for an address, and where a proxy looks it up."""
    if case.project is None:
        return None
    parts = urlsplit(case.project.manifest.data.index)
    host = parts.hostname or ""
    is_name = not is_loopback(host) and not host.replace(".", "").isdigit() and ":" not in host
    proxied = bool(case.settings["network.proxy"]) or parts.scheme in getproxies()
    return host if is_name and not proxied else None


def name(host: str, family: int = socket.AF_UNSPEC, unknown: State = State.FAIL) -> Iterator[Finding]:
    """Whether a name server knows an address of `host`; `unknown` is the state if not."""
    begun = time.monotonic()
    try:
        socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the latter for a label that is too long for any name
        advice = Text("doctor.check_name_server")
        yield Finding(Check.NAME, unknown, Text("doctor.name_unknown", host=host), advice, host)
    else:
        took = time.monotonic() - begun
        found = Text("doctor.name_known", host=host, milliseconds=took * 1000)
        yield Finding(Check.NAME, State.OK, found, subject=host, seconds=took)


# --- the seeds' ports


def seeds(case: Case) -> Iterator[Task]:
    """One task for each seed."""
    for address in case.addresses:
        yield Task(Check.SEED, partial(seed, address, case.seed_down), endpoint(address))


def seed(address: str, down: tuple[State, Text]) -> Iterator[Finding]:
    """Whether the port of a seed answers; `down` is how bad it is if not, and what to do."""
    where = endpoint(address)
    if "/tcp/" not in address:
        yield Finding(Check.SEED, State.SKIPPED, Text("doctor.seed_not_tcp", seed=where), subject=where)
        return
    begun = time.monotonic()
    failure = dial_one(address)
    took = time.monotonic() - begun
    if not failure:
        found = Text("doctor.seed_answers", seed=where, milliseconds=took * 1000)
        yield Finding(Check.SEED, State.OK, found, subject=where, seconds=took)
        return
    state, advice = down
    yield Finding(Check.SEED, state, Text("doctor.seed_silent", seed=where, failure=failure), advice, where)


# --- peers to join through while no seed answers


def known_peers(case: Case, clock: Callable[[], float] = time.time, dial: Dial = dial_one) -> Iterator[Finding]:
    """How many peers of this run are remembered, when a round with one was confirmed last, and whether one answers.

    Before the first round none are to be expected. Those on the internet only are dialled: an address of a network at
    home may be another computer's in the network where this computer is now.
    """
    known = case.known(clock())
    if not known:
        state = State.WARN if case.is_running else State.SKIPPED
        advice = Text("doctor.known_peers_advice") if case.is_running else NOTHING
        yield Finding(Check.KNOWN_PEERS, state, Text("doctor.no_peers_known"), advice)
        return
    ago = max(0.0, clock() - known[0].met)
    if _nobody_answers([each.address for each in known], dial):
        found, advice = (
            Text("doctor.no_known_peer_answers", count=len(known), span=ago),
            Text("doctor.known_peers_advice"),
        )
        yield Finding(Check.KNOWN_PEERS, State.WARN, found, advice)
    else:
        yield Finding(Check.KNOWN_PEERS, State.OK, Text("doctor.peers_known", count=len(known), span=ago))


def _nobody_answers(addresses: Sequence[str], dial: Dial) -> bool:
    """Whether all of these can be dialled from anywhere, and none answers."""
    if not all(map(_is_global, addresses)):
        return False
    with ThreadPoolExecutor(len(addresses)) as pool:
        return all(pool.map(dial, addresses))


def _is_global(address: str) -> bool:
    try:
        return is_global(ipaddress.ip_address(host_of(address)))
    except ValueError:  # a name
        return True


# --- the server with the training data, and the clock by its answer


def data(project: VerifiedProject, proxy: str) -> Iterator[Finding]:
    """Whether the index is there and right, how far the clocks are apart, and whether downloads can be resumed."""
    source = project.manifest.data
    web, what = Web(PATIENCE, Stop(), project.reach, lambda: proxy), Text("shard.project_shard_index")
    begun, asked = time.monotonic(), time.time()
    with web.get(source.index, Text("shard.named_what", what=what)) as answer:
        answered, took = time.time(), time.monotonic() - begun
        if answer.date is not None:
            middle, uncertain = (asked + answered) / 2, HALF_A_SECOND + (answered - asked) / 2
            yield clock_finding(answer.host, middle - (answer.date + HALF_A_SECOND), uncertain)
        raw = _whole(answer)
        host = answer.host
    if hashlib.sha256(raw).hexdigest() != source.sha256:
        found, advice = Text("doctor.data_wrong", host=host), Text("doctor.newer_manifest")
        yield Finding(Check.DATA, State.FAIL, found, advice, host, took)
        return
    index = parse_index(raw, project.manifest.recipe.layout)
    first = index.shards[0].sha256
    named = Text("shard.named_name", named=Text("shard.shard", sha256=first[:12]))
    with web.get(shard_address(source.index, first), named, first_byte=1) as answer:
        resumes = answer.start == 1
    if resumes:
        yield Finding(
            Check.DATA,
            State.OK,
            Text("doctor.data_there", host=host, milliseconds=took * 1000),
            subject=host,
            seconds=took,
        )
    else:
        found = Text("doctor.data_whole_only", host=host)
        yield Finding(Check.DATA, State.WARN, found, Text("doctor.downloads_start_over"), host, took)


def _whole(answer: Answer) -> bytes:
    raw = bytearray()
    for chunk in answer.chunks():
        raw += chunk
        if len(raw) > INDEX_BYTES_LIMIT:
            break
    return bytes(raw)


def server(case: Case) -> Iterator[Finding]:
    """As `data`; a failure is the server's finding."""
    assert case.project is not None
    host = urlsplit(case.project.manifest.data.index).netloc
    try:
        yield from data(case.project, str(case.settings["network.proxy"]))
    except SkepError as error:
        yield Finding(Check.DATA, State.FAIL, error.title, error.hint, host)
