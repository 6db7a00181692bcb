"""What the connection doctor looks at, and what each check found, as data. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from skep.core.text import NOTHING, Text, as_data, from_data


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"
    """Not looked at, with the reason; it counts as neither good nor bad."""


class Check(StrEnum):
    """The checks in the order in which they are listed. The values are the ids in JSON and never change."""

    RUNNING = "running"
    HOME = "home"
    DEVICE = "device"
    KEYRING = "keyring"
    SANDBOX = "sandbox"
    CLOCK = "clock"
    NAME = "dns"
    SEED = "seed"
    KNOWN_PEERS = "known_peers"
    DATA = "data"
    HANDSHAKE = "libp2p"
    SWARM = "swarm"
    REACHABILITY = "reachability"

    @property
    def label(self) -> Text:
        return _TITLES[self]


_TITLES: Final[Mapping[Check, Text]] = {
    Check.RUNNING: Text("doctor.running"),
    Check.HOME: Text("doctor.home"),
    Check.DEVICE: Text("doctor.device"),
    Check.KEYRING: Text("doctor.keyring"),
    Check.SANDBOX: Text("doctor.sandbox"),
    Check.CLOCK: Text("doctor.clock"),
    Check.NAME: Text("doctor.name"),
    Check.SEED: Text("doctor.seed"),
    Check.KNOWN_PEERS: Text("doctor.known_peers"),
    Check.DATA: Text("doctor.data"),
    Check.HANDSHAKE: Text("doctor.handshake"),
    Check.SWARM: Text("doctor.swarm"),
    Check.REACHABILITY: Text("doctor.reachability"),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and what the person can do; `advice` may be empty.

    `subject` distinguishes several findings of one check: a seed's host and port, a name, a device. `seconds` is how
    long the answer took, None where that says nothing.
    """

    check: Check
    state: State
    found: Text
    advice: Text = NOTHING
    subject: str = ""
    seconds: float | None = None


def as_json(finding: Finding) -> dict[str, Any]:
    """`finding` with its texts still to be put into words."""
    return {
        "id": str(finding.check),
        "subject": finding.subject,
        "state": str(finding.state),
        "found": finding.found,
        "advice": finding.advice,
        "seconds": None if finding.seconds is None else round(finding.seconds, 4),
    }


def to_line(finding: Finding) -> str:
    """One line of JSON, for the pipe from the process that asks peers."""
    return json.dumps(as_json(finding) | {"found": as_data(finding.found), "advice": as_data(finding.advice)})


def from_line(line: str | bytes) -> Finding:
    """The finding in a line of `to_line`. Raises ValueError."""
    try:
        match json.loads(line):
            case {
                "id": id_,
                "state": state,
                "subject": str(subject),
                "seconds": None | int() | float() as took,
                "found": found,
                "advice": advice,
            }:
                return Finding(Check(id_), State(state), from_data(found), from_data(advice) or NOTHING, subject, took)
            case _:
                raise ValueError("no finding")
    except RecursionError:
        raise ValueError("no finding") from None


def worst(findings: Iterable[Finding]) -> State:
    """FAIL before WARN before OK; skipped checks do not count."""
    states = {each.state for each in findings}
    return next((state for state in (State.FAIL, State.WARN) if state in states), State.OK)


def listed(findings: Iterable[Finding]) -> list[Finding]:
    """In the order of the checks; those of one check as they came."""
    order = list(Check)
    return sorted(findings, key=lambda each: order.index(each.check))


class Questions(msgspec.Struct, frozen=True):
    """What the process that asks peers shall find out; the one line that it reads.

    `seeds` are multiaddresses, and `known` those of remembered peers, which are tried if no seed can be met. `port`,
    `map_port`, `listen_host` and `client_mode` are as in WorkerOptions. If `is_running`, this computer is in the swarm
    already, and only the seeds are tried. The peers of an `invited` swarm answer no one else. The process has to end
    `within` seconds; `patience` is how many a peer may take to answer.
    """

    seeds: tuple[str, ...]
    run_id: str
    run_folder: str
    known: tuple[str, ...] = ()
    port: int = 0
    map_port: bool = False
    listen_host: str = "127.0.0.1"
    client_mode: str = "automatic"
    invited: bool = False
    is_running: bool = False
    within: float = 30.0
    patience: float = 7.0


def seed_down(*, others: bool, known: bool) -> tuple[State, Text]:
    """How bad it is that a seed does not answer, and what to do: where there are `others`, or peers that are remembered."""
    if others:
        return State.WARN, Text("doctor.one_seed_down")
    if known:
        return State.WARN, Text("doctor.known_peers_instead")
    return State.FAIL, Text("doctor.only_seed_down")


# --- the clock

CLOCK_OK_SECONDS: Final = 1.0
CLOCK_LIMIT_SECONDS: Final = 3.0
"""Peers refuse a computer whose clock differs from theirs by more (hivemind's limit)."""


def clock_finding(subject: str | Text, ahead: float, uncertain: float) -> Finding:
    """`ahead` is by how many seconds this computer's clock is ahead of `subject`'s, known to `uncertain` seconds.

    A `subject` in words has no name by which findings are distinguished.
    """
    name = subject if isinstance(subject, str) else ""
    least = max(0.0, abs(ahead) - uncertain)
    if least <= CLOCK_OK_SECONDS:
        return Finding(Check.CLOCK, State.OK, Text("doctor.clock_agrees", subject=subject), subject=name)
    state = State.FAIL if least > CLOCK_LIMIT_SECONDS else State.WARN
    found = (
        Text("doctor.clock_ahead", subject=subject, span=abs(ahead))
        if ahead > 0
        else Text("doctor.clock_behind", subject=subject, span=abs(ahead))
    )
    return Finding(Check.CLOCK, state, found, Text("doctor.set_clock"), name)
