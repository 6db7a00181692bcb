"""The parts `lockstep` and `stock`: the parameters of honest peers while they are attacked, equal to those of a run without.

Three peers with fixed gradients and a fixed number of micro-batches an epoch, which are sent without a lossy codec, go
through the same epochs with and without an attack: with skep, where an attack that can be refused must change nothing,
and with stock hivemind in skep's place, to see what it does there.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from report import Row

from faults.hostile import COUNT, MEMORY, Watch, attacking, attacks, dead
from faults.places import own_folder
from faults.rows import Measured, Part
from faults.small_swarm import Event, SmallPeer, wait
from skep.host.practice.swarm import PracticeFolder, seed

SCRIPT = Path(__file__).with_name("lockstep_peer.py")
SECONDS = 12.0
START_SECONDS, EPOCH_SECONDS = 120.0, 60.0
EQUAL = 1e-6
ATTACKS = 8
"""On one swarm, as rounding errors add up."""
LOG_CHARACTERS = 400
RUN = "lockstep"
CYCLE = 4
"""Epochs after which the gradients' sum is zero."""
MICRO_BATCHES = (4, 3, 2)
"""Of each peer in an epoch: unequal, so that weights matter."""


class Lockstep:
    """Three peers of one kind and their seed; each epoch begins when all have counted their micro-batches of it."""

    def __init__(self, folder: Path, kind: str, ending: contextlib.ExitStack, seconds: float = SECONDS) -> None:
        """`seconds`: how long an attack lasts. Raises TimeoutError when the peers do not begin."""
        self.folder, self._kind, self.seconds = folder, kind, seconds
        self._ending, self._made = ending, 0
        self._seeds: list[str] = []
        self._about: list[Event] = []
        self.others: dict[str, SmallPeer] = {}
        """Besides those that train: a stock seed, a newcomer."""
        if kind == "skep":
            self._seeds = ending.enter_context(seed(PracticeFolder(folder), 0))
        else:
            self.others["seed"] = self._start("seed")
            self._seeds = self._ready([self.others["seed"]])[0]["addresses"]
        self.peers = [self._start("peer", number) for number in range(len(MICRO_BATCHES))]
        self._about = self._ready(self.peers)
        self._wait_until_all_say("counted", START_SECONDS)

    def _start(self, role: str, number: int = 0) -> SmallPeer:
        self._made += 1
        own = self.folder / f"{role}{self._made}"
        own.mkdir()
        said = {"kind": self._kind, "role": role, "number": number, "peers": self._seeds, "folder": str(own)}
        run = {"run_id": RUN, "micro_batches": MICRO_BATCHES, "cycle": CYCLE, "honest": self._honest}
        (options := own.with_suffix(".json")).write_text(json.dumps(said | run))
        peer = SmallPeer(options, SCRIPT)
        self._ending.callback(peer.kill)
        return peer

    def _ready(self, peers: list[SmallPeer]) -> list[Event]:
        self._wait(lambda: all(each.named("ready") for each in peers), START_SECONDS, peers)
        return [each.named("ready")[0] for each in peers]

    @staticmethod
    def _wait(condition: Callable[[], bool], within: float, peers: list[SmallPeer]) -> None:
        """Raises TimeoutError, also once a peer has ended."""
        wait(lambda: condition() or not all(each.runs for each in peers), within, peers)
        if not condition():
            raise TimeoutError(f"ended: {[each.words()[-500:] for each in peers if not each.runs]}")

    def _wait_until_all_say(self, what: str, within: float) -> None:
        """Until each peer has said this in its epoch, and waits. Raises TimeoutError."""

        def has_said(peer: SmallPeer) -> bool:
            return len(peer.named(what)) == len(peer.named("epoch")) + 1

        self._wait(lambda: all(map(has_said, self.peers)), within, self.peers)

    def end_epoch(self) -> list[Event]:
        """What each peer says of the next epoch. Raises TimeoutError, which an epoch without an end is."""
        count = max(len(each.named("epoch")) for each in self.peers)
        for peer in self.peers:
            peer.tell("go")
        self._wait_until_all_say("due", EPOCH_SECONDS)
        for peer in self.peers:
            peer.tell("go")
        self._wait(lambda: all(len(each.named("epoch")) > count for each in self.peers), EPOCH_SECONDS, self.peers)
        self._wait_until_all_say("counted", EPOCH_SECONDS)
        return [each.named("epoch")[-1] for each in self.peers]

    def newcomer(self) -> SmallPeer:
        """It will ask for the state when it is told to. Raises TimeoutError."""
        made = self.others["newcomer"] = self._start("newcomer")
        self._ready([made])
        return made

    @property
    def _honest(self) -> list[str]:
        return [each["peer"] for each in self._about]

    @property
    def epoch(self) -> int:
        return int(self.peers[0].named("counted")[-1]["epoch"])

    @property
    def target(self) -> dict[str, Any]:
        about = self._about[0]
        return {
            "address": self._seeds[0],
            "run_id": about["run_id"],
            "peers": [self._seeds[0].rpartition("/")[2], *self._honest],
            "shapes": about["shapes"],
            "target_batch_size": about["target"],
            "epoch": self.epoch,
            "seconds": self.seconds,
            "reduces": False,
        }

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Each peer's process tree."""
        named = self.others | {f"peer {number}": each for number, each in enumerate(self.peers)}
        return {name: each.family() for name, each in named.items() if each.runs}


Reference = dict[int, list[float]]
"""The parameters at the beginning of each epoch of a cycle, of a run without an attack."""


def without_attack(swarm: Lockstep) -> Reference:
    """A cycle of a new swarm. Raises RuntimeError when its own peers do not agree."""
    found: Reference = {}
    for _ in range(CYCLE):
        first, *others = swarm.end_epoch()
        found[first["epoch"] % CYCLE] = first["values"]
        apart = max(difference(each, found) for each in others)
        if apart > EQUAL:
            raise RuntimeError(f"without an attack the peers are {apart:g} apart in epoch {first['epoch']}")
    return found


def difference(said: Event, reference: Reference) -> float:
    """The largest of any parameter; infinite if one is not finite."""
    pairs = zip(said["values"], reference[said["epoch"] % CYCLE], strict=True)
    found = [abs(value - expected) for value, expected in pairs]
    return max(found) if all(map(math.isfinite, found)) else math.inf


def measure(kind: str, numbers: range) -> Iterator[Measured]:
    known, left = attacks(), deque(numbers)
    names, reference = list(known), Reference()
    while left:
        with own_folder() as folder, contextlib.ExitStack() as ending:
            swarm, sound = Lockstep(folder, kind, ending), True
            reference = reference or without_attack(swarm)
            until = len(left) - ATTACKS
            while left and sound and len(left) > until:
                number = left.popleft()
                name = names[number % len(names)]
                row = attacked(swarm, name, reference, joined=known[name]["newcomer"])
                sound = unharmed(row)  # else the next attack has a new swarm
                yield {"number": number, "limited": known[name]["limited"]} | row


def unharmed(row: Measured) -> bool:
    return not (row["ended"] or row["hung"] or row["jumped"]) and row["difference"] <= EQUAL


def attacked(swarm: Lockstep, name: str, reference: Reference, *, joined: bool) -> Measured:
    """One attack; with `joined` a newcomer loads the state meanwhile."""
    newcomer = swarm.newcomer() if joined else None
    before, watch, begun, first = swarm.processes(), Watch(swarm), time.monotonic(), swarm.epoch
    said: dict[str, int] = {}
    seen: list[list[Event]] = []
    hung = ""
    try:
        with attacking(swarm, name) as until_its_end:
            while time.monotonic() - begun < swarm.seconds or len(seen) < CYCLE:
                seen.append(swarm.end_epoch())
                if newcomer and len(seen) == 1:
                    newcomer.tell("go")
            if newcomer:
                wait_joined(newcomer)
            said = until_its_end()
        seen.append(swarm.end_epoch())
    except (TimeoutError, OSError):
        hung = "; ".join(f"{each.name}: {each.words()[-LOG_CHARACTERS:]}" for each in swarm.peers)
    seconds, grown, ended = time.monotonic() - begun, watch.end(), dead(before)
    came = (newcomer.named("joined") or newcomer.named("failed") or [None])[0] if newcomer else None
    if newcomer:
        swarm.others.pop("newcomer").kill()
    return {
        "attack": name,
        "said": said,
        "ended": ended,
        "hung": hung,
        "epochs": len(seen),
        "jumped": any(each["epoch"] != first + count for count, each in enumerated(seen)),
        "difference": max((difference(each, reference) for _, each in enumerated(seen)), default=math.inf),
        "groups": [[each["size"] for each in peer.named("group") if each["epoch"] >= first] for peer in swarm.peers],
        "lost": [each["reason"] for peer in swarm.peers for each in peer.named("lost") if each["epoch"] >= first],
        "newcomer": newcomer and newcomer_said(came, reference, range(first, first + len(seen) + 1)),
        "memory": round(grown, 1),
        "seconds": round(seconds, 1),
    }


def enumerated(seen: list[list[Event]]) -> list[tuple[int, Event]]:
    """What each peer has said, with the number of epochs that had ended by then."""
    return [(count, each) for count, said in enumerate(seen, 1) for each in said]


def wait_joined(newcomer: SmallPeer) -> None:
    wait(lambda: bool(newcomer.named("joined") or newcomer.named("failed")), EPOCH_SECONDS, [newcomer])


def newcomer_said(came: Event | None, reference: Reference, epochs: range) -> str:
    """What became of it: nothing if it has the state that one of these `epochs` has in the run without an attack."""
    if came is None:
        return "never joined"
    if came["event"] == "failed":
        return str(came["why"])
    if came["epoch"] not in epochs:
        return f"in epoch {came['epoch']}"
    apart = difference(came, reference)
    return "" if apart <= EQUAL else f"other parameters, by {apart:.2g}"


def harm(row: Measured) -> str:
    """What an attack has done; empty if nothing."""
    found = []
    if row["ended"]:
        found.append(f"ends {', '.join(row['ended'])}")
    elif row["hung"]:
        found.append(f"no epoch within {EPOCH_SECONDS:g} s")
    if row["jumped"]:
        found.append("another epoch")
    if row["epochs"] and not row["difference"] <= EQUAL:
        found.append("other parameters" + f", by {row['difference']:.2g}" * math.isfinite(row["difference"]))
    if row["newcomer"]:
        found.append(f"newcomer: {row['newcomer']}")
    if row["memory"] > MEMORY:
        found.append(f"+{row['memory']:.0f} MB")
    return "; ".join(found)


def reached(row: Measured) -> bool:
    """Whether it did something; of one that is for newcomers, whether the newcomer asked for the state."""
    return row["said"].get("tried", 0) > 0 and (row["newcomer"] is None or row["said"].get("answered", 0) > 0)


def judged(rows: list[Measured]) -> list[Row]:
    can = [row for row in rows if not row["limited"]]
    apart = [math.inf if row["hung"] or row["jumped"] else row["difference"] for row in can]
    ended, memory = [float(len(row["ended"])) for row in rows], [row["memory"] for row in rows]
    others, lost = [float(bool(row["newcomer"])) for row in rows], [float(len(row["lost"])) for row in can]
    return [
        *judged_stock(rows),
        Row("attacks that did something", sum(map(reached, rows)), "", None, [], least=len(rows)),
        Row("peers with an ended process", sum(ended), "", 0, ended),
        Row("attacks without an end of an epoch", sum(bool(row["hung"]) for row in rows), "", 0),
        Row("parameters apart from those without the attack", max(apart, default=0.0), "", EQUAL, apart),
        Row("contributions lost", sum(lost), "", 0, lost),
        Row("newcomers with another state", sum(others), "", 0, others),
        Row("memory more than before", max(memory, default=0.0), "MB", MEMORY, memory),
    ]


def judged_stock(rows: list[Measured]) -> list[Row]:
    harmed = [float(bool(harm(row))) for row in rows]
    return [
        Row("attacks", len({row["attack"] for row in rows}), "", None, [], least=COUNT),
        Row("attacks that harm", sum(harmed), "", None, harmed),
    ]


LOCKSTEP = Part("lockstep", "parameters while attacked", COUNT, partial(measure, "skep"), judged)
STOCK = Part("stock", "the same attacks on stock peers", COUNT, partial(measure, "stock"), judged_stock)
