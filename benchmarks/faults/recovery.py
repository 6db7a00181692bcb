"""One fault of one process of a volunteer that trains, and how skep comes back from it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from families import alive, lives
from faults.family import Family, Role
from faults.volunteer import LOOK_SECONDS, Volunteer, damage

CLEARED_SECONDS = 5.0
"""Within this nothing of the old processes is left."""


@dataclass
class Recovery:
    """What was seen after a fault; times are seconds after it, None for what did not happen in time.

    `noticed`: the old worker ended, or a problem was shown. `back`: the first confirmed contribution that went into its
    round after the fault and after every role had a running process again. `left`: the old processes that were alive
    5 s after the worker's end, or after the fault if that ended the worker or the front end. `phase` is what the screen
    says when the time is over.
    """

    noticed: float | None = None
    back: float | None = None
    left: list[str] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    same_identity: bool = True
    phase: str = ""
    problems: list[str] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        return {name: round(value, 1) if isinstance(value, float) else value for name, value in vars(self).items()}


def kill_one(volunteer: Volunteer, role: Role, within: float) -> Recovery:
    """Kill the process with that role, and watch for at most `within` seconds."""
    at_once = role in {Role.FRONT_END, Role.WORKER}
    return inflict(volunteer, lambda family: family.roles[role].kill(), within, ends_at_once=at_once)


def stop_one(volunteer: Volunteer, role: Role, within: float) -> Recovery:
    """The same with SIGSTOP."""
    return inflict(volunteer, lambda family: family.roles[role].suspend(), within)


def inflict(
    volunteer: Volunteer, fault: Callable[[Family], None], within: float, *, ends_at_once: bool = False
) -> Recovery:
    """Do `fault` to a whole family, and watch for at most `within` seconds.

    With `ends_at_once` nothing may be left 5 s after the fault, else 5 s after the end of the worker. A front end that
    has ended is started again, with `ends_at_once` when that is known: the next one would end what is left. The ledger
    is compared with that after the last fault. Raises TimeoutError, sqlite3.Error.
    """
    family = volunteer.family() or volunteer.wait_until_training()
    before, identity, told = volunteer.inspected, volunteer.identity(), len(volunteer.events)
    begun = time.time()
    fault(family)
    seen = _watched(volunteer, family, begun, within, ends_at_once=ends_at_once)
    acknowledged = volunteer.acknowledged()  # before the ledger is read: one told of in between is not in it
    volunteer.inspected = volunteer.ledger()
    seen.lost, seen.doubled = damage(before, volunteer.inspected, acknowledged)
    seen.same_identity = volunteer.identity() == identity
    seen.problems = [each["title"] for each in volunteer.events[told:] if each["event"] == "problem"]
    if seen.back is None:
        seen.phase = volunteer.phase()
    return seen


def _watched(volunteer: Volunteer, old: Family, begun: float, within: float, *, ends_at_once: bool) -> Recovery:
    seen, whole, ended = Recovery(), 0.0, begun if ends_at_once else 0.0
    worker, judged, told = old.roles[Role.WORKER], False, len(volunteer.events)
    while time.time() < begun + within and not (seen.back and judged):
        if judged or not ends_at_once:
            volunteer.keep_running()
        now = time.time()
        if not lives(worker):
            ended = ended or now
        if seen.noticed is None and (not lives(worker) or _complained(volunteer, told)):
            seen.noticed = now - begun
        if ended and not judged:
            remaining = alive(old.without_front_end())
            judged = not remaining or now > ended + CLEARED_SECONDS
            seen.left = [_described(each) for each in remaining] if judged else []
        family = volunteer.family()
        whole = (whole or now) if family else 0.0
        if family and not seen.back and (first := volunteer.first_confirmed(max(begun, whole))):
            seen.back = first.settled - begun
            # in place, without another worker
            judged = judged or family.roles[Role.WORKER] == worker
        time.sleep(LOOK_SECONDS)
    if ended and not judged:
        seen.left = [_described(each) for each in alive(old.without_front_end())]
    return seen


def _complained(volunteer: Volunteer, told: int) -> bool:
    return any(each["event"] == "problem" for each in volunteer.events[told:])


def _described(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.name()} {process.status()}"
    return "ended meanwhile"
