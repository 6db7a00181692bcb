"""The part `donor`: the donor of a state is killed or frozen at 10, 50 and 90 % of it, or sends something wrong there.

A newcomer joins a run in which two peers offer a state of 31 MB, each at a given rate; the fault is that of the one
that it asks first. The other one has the same state, to the bit, and goes on where the first one stopped; or it has
that of the next epoch, of which nothing is the same, and the newcomer begins anew.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import Row

from faults.places import own_folder
from faults.rows import Measured, Part, attempted
from faults.small_swarm import Event, SmallPeer, wait
from skep.host.practice.swarm import PracticeFolder, seed

SCRIPT = Path(__file__).with_name("state_peer.py")
RATE = 3e6
"""Bytes a second of each donor, so that a state takes ten seconds."""
EPOCH = 7
FAULTS, MOMENTS = ("killed", "frozen", "bytes", "nan", "negative"), (0.1, 0.5, 0.9)
LIES = FAULTS[2:]
SAME = "the same state"
CHUNK = 512 * 1024
"""Bytes of one frame."""
TENSOR = 4 * 327_680
"""Bytes of one tensor: those of a wrong one are received twice."""
START_SECONDS, JOIN_SECONDS = 900.0, 600.0
LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Case:
    fault: str
    moment: float
    """At this part of the state; a wrong second moment comes no earlier than the first one."""
    same: bool = True
    """Whether the other donor has the same state."""
    rate: float = RATE


CASES = [
    *(Case(fault, moment) for fault, moment in itertools.product(FAULTS, MOMENTS)),
    *(Case("killed", moment, same=False) for moment in MOMENTS),
]


def measure(numbers: range) -> Iterator[Measured]:
    for number in numbers:
        case = CASES[number % len(CASES)]
        about = {"number": number, "fault": case.fault, "moment": case.moment}
        with own_folder() as folder, donors(folder / "s") as start:
            yield attempted(about, one, start, case)


Start = Callable[..., SmallPeer]


@contextmanager
def donors(folder: Path) -> Iterator[Start]:
    """A seed peer, and the call that starts a peer of its run by its name and options."""
    folder.mkdir()
    with seed(PracticeFolder(folder), 0) as addresses, ExitStack() as ending:

        def start(name: str, **options: Any) -> SmallPeer:
            file = folder / f"{name}.json"
            file.write_text(json.dumps({"peers": addresses, "run_id": "donors", "lie": "", "rate": RATE} | options))
            peer = SmallPeer(file, SCRIPT)
            ending.callback(peer.kill)
            return peer

        yield start


def one(start: Start, case: Case) -> Measured:
    """One newcomer that loses its first donor, and where its state came from. Raises TimeoutError."""
    states = {"first": (EPOCH, 1), "second": (EPOCH, 1) if case.same else (EPOCH + 1, 2)}
    lie = {"lie": case.fault, "place": case.moment} if case.fault in LIES else {}
    made: dict[str, SmallPeer] = {}
    for name, (epoch, number) in states.items():
        first = name == "first"
        priority = EPOCH + (4 if first else 1)  # so far apart that the first is not asked by chance
        common = {"kind": "donor", "epoch": epoch, "seed": number, "priority": priority, "rate": case.rate}
        made[name] = start(name, **common, **(lie if first else {}))
    wait(lambda: all(peer.named("ready") for peer in made.values()), START_SECONDS, made.values(), LOOK_SECONDS)
    named = {peer.named("ready")[0]["peer"]: name for name, peer in made.items()}
    newcomer = made["newcomer"] = start("newcomer", kind="newcomer", donors=2, states=states)
    wait(lambda: bool(newcomer.named("asks")), START_SECONDS, made.values(), LOOK_SECONDS)
    total = int(newcomer.named("asks")[0]["state"])
    at: float | None = None
    if case.fault not in LIES:
        wait(
            lambda: received(newcomer.named("frame")) >= case.moment * total, JOIN_SECONDS, made.values(), LOOK_SECONDS
        )
        {"killed": made["first"].kill, "frozen": made["first"].freeze}[case.fault]()
        at = received(newcomer.named("frame")) / total
    wait(lambda: bool(newcomer.named("joined") or newcomer.named("failed")), JOIN_SECONDS, made.values(), LOOK_SECONDS)
    joined = next(iter(newcomer.named("joined")), None)
    frames = newcomer.named("frame")
    sent = {name: received(frames, peer) for peer, name in named.items()}
    return {
        "fault": case.fault,
        "moment": case.moment,
        "at": round(sent["first"] / total if at is None else at, 3),
        "other_donor": SAME if case.same else "the next epoch's",
        "joined": joined is not None,
        "seconds": round(joined["seconds"], 1) if joined else None,
        "state_of": joined["state_of"] if joined else "",
        "state": total,
        "received": received(frames),
        "by_donor": sent,
        "resumed": 0 < sent["second"] < total,
    }


def received(frames: list[Event], peer: str | None = None) -> int:
    """Bytes of a state, from one peer or all."""
    return sum(frame["bytes"] for frame in frames if peer in (None, frame["peer"]))


def is_of_second(row: Measured) -> bool:
    """Whether it joined with what the other donor has; if that is the same state, with the rest of it."""
    rest = (row["resumed"] and row["by_donor"]["first"] > 0) or row["other_donor"] != SAME
    return bool(row["joined"] and "second" in row["state_of"] and rest)


def judged(rows: list[Measured]) -> list[Row]:
    """Bytes that came beyond the state: at most a chunk; of a wrong tensor, it is received twice."""
    made = []
    for kind in dict.fromkeys((row["fault"], row["other_donor"]) for row in rows):
        own = [row for row in rows if (row["fault"], row["other_donor"]) == kind]
        name, lost = ", ".join(kind), [float(not is_of_second(row)) for row in own]
        made.append(Row(f"{name}: not joined with the other donor's state", sum(lost), "", 0, lost))
        seconds = [row["seconds"] for row in own if row["joined"]]
        if seconds:
            made.append(Row(f"{name}: joined, longest", max(seconds), "s", None, seconds))
        more = [(row["received"] - row["state"]) / CHUNK for row in own]
        bound = None if own[0]["other_donor"] != SAME else 1 + (TENSOR / CHUNK) * (kind[0] in LIES)
        made.append(Row(f"{name}: bytes beyond the state, most", max(more), "chunks", bound, more))
    return made


PART = Part("donor", "a donor killed, frozen or lying at 10, 50, 90 % of a state", len(CASES), measure, judged)
