"""The part `stall`: what a peer that dies, freezes or leaves costs each of the others, skep's peers beside stock ones.

In one run the peers are of one kind; the runs of both kinds alternate. The fault comes at a random moment of an epoch,
in one of five runs in its last 3 %, where its round begins.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from report import Row

from faults.places import own_folder
from faults.rows import Measured, Part, attempted
from faults.small_swarm import Event, SmallPeer, SmallSwarm, small_swarm

SEED = 15
KINDS, SIZES = ("skep", "stock"), (2, 4, 8)
RUNS = range(5)
CASES = [case for faults in (("kill", "freeze"), ("leave",)) for case in itertools.product(RUNS, SIZES, faults, KINDS)]
"""One row each; peers that leave politely come last."""
RATE = 64.0
EPOCH_SECONDS = 10.0
CALM, AFTER = 3, 3
START_SECONDS, EPOCH_PATIENCE = 180.0, 90.0
LOOK_SECONDS = 0.02
NEAR_END = 0.97
STALL_BOUNDS = {"kill": 1.0, "freeze": 5.0, "leave": 1.0}
CALM_BOUND = 1.0
"""Seconds without computing in an epoch without a fault, as a median; with more, a stall is not the fault's alone."""
LOST_BOUND = 1
SAMPLES_BOUND = 5.0
BATCHES_BOUND = 1.0
"""The epoch of the fault may lack the peer's own share: others extrapolate its samples until its record is gone, which
may take longer than the epoch. As they do that between its batches too, each survivor may have a batch less than it
counted with."""
OLD_BATCH = 2
"""Samples of a batch where a row does not say so."""


def measure(numbers: range) -> Iterator[Measured]:
    for number in numbers:
        again, place = divmod(number, len(CASES))
        run, size, fault, kind = CASES[place]
        case = Case(size, fault, moment_of(run + again * len(RUNS), size, fault))
        about = {"number": number, "kind": kind, "peers": size, "fault": fault}
        yield attempted(about, in_a_swarm, kind, case)


def moment_of(run: int, size: int, fault: str) -> float:
    """The same for both kinds."""
    moment = random.Random(f"{SEED} {run} {size} {fault}").random()
    return NEAR_END + (1 - NEAR_END) * moment if run % len(RUNS) == RUNS[-1] else moment


@dataclass(frozen=True)
class Case:
    """`moment` is when in an epoch the fault comes, 0 to 1; so many epochs before and after it are compared.

    The samples of an epoch take `seconds` to compute.
    """

    size: int
    fault: str
    moment: float
    calm: int = CALM
    after: int = AFTER
    seconds: float = EPOCH_SECONDS

    @property
    def target(self) -> int:
        return int(self.size * RATE * self.seconds)


def in_a_swarm(kind: str, case: Case) -> Measured:
    """The case among peers of one kind. Raises TimeoutError."""
    with own_folder() as folder, small_swarm(folder / "s", kind, case.target, RATE) as swarm:
        return {"kind": kind, "peers": case.size, "fault": case.fault} | one(swarm, case)


def one(swarm: SmallSwarm, case: Case) -> Measured:
    """Peers that train in step, the fault to one of them, and what the others did then. Raises TimeoutError."""
    peers = [swarm.add() for _ in range(case.size)]
    swarm.wait(lambda: all(peer.named("joined") for peer in peers), START_SECONDS)
    first = max(epoch_of(peer) for peer in peers) + 1
    # the peers reach the first one together; it does not count
    swarm.wait(lambda: all(epoch_of(peer) > first + case.calm for peer in peers), (case.calm + 2) * EPOCH_PATIENCE)
    begun = max(peer.named("epoch")[-1]["at"] for peer in peers)
    took = statistics.median(seconds for peer in peers for seconds in epochs(peer.named("epoch")[-case.calm - 1 :]))
    swarm.wait(lambda: time.monotonic() >= begun + case.moment * took, EPOCH_PATIENCE, look=LOOK_SECONDS)
    victim, *others = peers
    survivors = [Survivor(peer, len(peer.named("epoch")), epoch_of(peer), case, time.monotonic()) for peer in others]
    during = max(each.epoch for each in survivors)
    {"kill": victim.kill, "freeze": victim.freeze, "leave": victim.leave}[case.fault]()
    swarm.wait(lambda: all(each.is_through for each in survivors), (case.after + 1) * EPOCH_PATIENCE)
    # the last epoch's contribution is settled when its step is done
    swarm.wait(lambda: all(settled(peer, during + case.after - 1) for peer in others), EPOCH_PATIENCE)
    return {
        "moment": round(case.moment, 3),
        "before_end": [round(each.before_end, 3) for each in survivors],
        "calm_blocked": [round(each.calm_blocked, 2) for each in survivors],
        "stall": [round(each.stall, 2) for each in survivors],
        "longer": [round(each.longer, 2) for each in survivors],
        "confirmed": [len(since(each.peer, "confirmed", each.epoch)) for each in survivors],
        "lost": [len(since(each.peer, "lost", each.epoch)) for each in survivors],
        "reasons": sorted({lost["reason"] for each in survivors for lost in since(each.peer, "lost", each.epoch)}),
        "samples": [samples(peers, "epoch", epoch) for epoch in range(during, during + case.after)],
        "lost_samples": [samples(peers, "lost", epoch) for epoch in range(during, during + case.after)],
        "target": case.target,
        "batch": peers[0].named("joined")[0]["batch"],
    }


def epoch_of(peer: SmallPeer) -> int:
    """The epoch that it is in."""
    ends = peer.named("epoch")
    return int(ends[-1]["epoch"] + 1 if ends else peer.named("joined")[0]["epoch"])


@dataclass(frozen=True)
class Survivor:
    """A peer that had ended `known` epochs and was in `epoch` when the fault came, `at` on the monotonic clock."""

    peer: SmallPeer
    known: int
    epoch: int
    case: Case
    at: float

    @property
    def is_through(self) -> bool:
        return len(self.peer.named("epoch")) >= self.known + self.case.after

    @property
    def _after(self) -> list[Event]:
        return self.peer.named("epoch")[self.known : self.known + self.case.after]

    @property
    def _before(self) -> list[Event]:
        """The calm epochs, and the one before them."""
        return self.peer.named("epoch")[self.known - self.case.calm - 1 : self.known]

    @property
    def before_end(self) -> float:
        """Seconds from the fault to the end of its epoch."""
        return float(self._after[0]["at"] - self.at)

    @property
    def calm_blocked(self) -> float:
        return float(statistics.median(end["blocked"] for end in self._before[1:]))

    @property
    def stall(self) -> float:
        """Seconds that it computed nothing in the epochs after the fault, beyond those of a calm one."""
        return float(sum(max(0.0, end["blocked"] - self.calm_blocked) for end in self._after))

    @property
    def longer(self) -> float:
        """Seconds that the epochs after the fault took beyond what one peer less explains."""
        last, size = self._before[-1]["at"], self.case.size
        took = statistics.median(epochs(self._before))
        gather = max(0.1, took - self.calm_blocked)
        done = min(1.0, (self.at - last) / gather)
        slower = gather * size / (size - 1)
        expected = done * gather + (len(self._after) - done) * slower + len(self._after) * (took - gather)
        return float(self._after[-1]["at"] - last - expected)


def settled(peer: SmallPeer, epoch: int) -> bool:
    return bool(since(peer, "confirmed", epoch) or since(peer, "lost", epoch))


def since(peer: SmallPeer, name: str, epoch: int) -> list[Event]:
    return [each for each in peer.named(name) if each["epoch"] >= epoch]


def epochs(ends: list[Event]) -> list[float]:
    """Seconds from one end to the next."""
    return [after["at"] - before["at"] for before, after in itertools.pairwise(ends)]


def samples(peers: list[SmallPeer], name: str, epoch: int) -> int:
    """Samples of that epoch in events of all peers: `epoch` what they have computed, `lost` what was not averaged."""
    return sum(event["samples"] for peer in peers for event in peer.named(name) if event["epoch"] == epoch)


def beyond_its_share(row: Measured) -> float:
    """Samples that the epoch of the fault lacks beyond the peer's own share; in batches of each survivor."""
    lacking = row["target"] - row["samples"][0] - row["target"] / row["peers"]
    return float(lacking / (row.get("batch", OLD_BATCH) * (row["peers"] - 1)))


def off_later(row: Measured) -> float:
    """By how many percent an epoch after that of the fault is off the target at most.

    Samples that were not averaged do not count, unless only one peer is left: it has no other to average with.
    """
    lost = row.get("lost_samples", ()) if row["peers"] > min(SIZES) else ()  # old rows do not say
    used = [computed - gone for computed, gone in itertools.zip_longest(row["samples"], lost, fillvalue=0)]
    return 100 * max(abs(each / row["target"] - 1) for each in used[1:])


def judged(rows: list[Measured]) -> list[Row]:
    made = []
    for size, fault, kind in dict.fromkeys((row["peers"], row["fault"], row["kind"]) for row in rows):
        own = [row for row in rows if (row["peers"], row["fault"], row["kind"]) == (size, fault, kind)]
        name, ours = f"{kind}, {size} peers, {fault}", kind == "skep"
        stalls = [max(row["stall"]) for row in own]
        gone = [float(max(row["lost"])) for row in own]
        beyond = [beyond_its_share(row) for row in own]
        off = [off_later(row) for row in own]
        calm = [max(row["calm_blocked"]) for row in own]
        made += [
            Row(f"{name}: stall, median", statistics.median(stalls), "s", None, stalls),
            Row(f"{name}: stall, largest", max(stalls), "s", STALL_BOUNDS[fault] if ours else None, stalls),
            Row(f"{name}: the same in an epoch before it", max(calm), "s", CALM_BOUND if ours else None, calm),
            Row(f"{name}: lost per survivor", max(gone), "", LOST_BOUND if ours and size > min(SIZES) else None, gone),
            Row(
                f"{name}: samples lacking at once beyond its share",
                max(beyond),
                "batches a survivor",
                BATCHES_BOUND if ours else None,
                beyond,
            ),
            Row(f"{name}: samples off later", max(off), "%", SAMPLES_BOUND if ours else None, off),
        ]
    return made


PART = Part("stall", "what a peer that is killed, frozen or leaves costs the others", len(CASES), measure, judged)
