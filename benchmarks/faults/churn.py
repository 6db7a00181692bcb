"""The part `churn`: every 20 s a peer dies or another one joins, for five minutes, after five calm minutes.

Small peers of skep that learn a linear task. What they reach is compared with the calm run at the same number of
samples, twice. As the swarm counts them, that is at the same number of epochs. As they were computed, by peers that were
killed too: for the seconds in which the others take these to compute, epochs end with fewer, and there are more of them.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report import Row

from faults.places import own_folder
from faults.rows import Measured, Part, attempted
from faults.small_swarm import Event, SmallPeer, SmallSwarm, small_swarm

SEED = 15
MOST, LEAST = 4, 3
RATE = 64.0
TARGET = int(MOST * RATE * 10)
SECONDS, EVERY = 300.0, 20.0
START_SECONDS = 180.0
JOIN_SECONDS = 40.0
RATE_BOUND, LOSS_BOUND = 90.0, 2.0
"""Percent."""


@dataclass(frozen=True)
class End:
    """Of an epoch, for its first peer: the samples that all had computed by then, and the loss."""

    epoch: int
    computed: int
    loss: float


def measure(numbers: range, seconds: float = SECONDS, every: float = EVERY) -> Iterator[Measured]:
    for number in numbers:
        yield attempted({"number": number, "seed": SEED}, compared, number, seconds, every)


def compared(number: int, seconds: float, every: float) -> Measured:
    """A busy run beside a calm one. Raises TimeoutError."""
    with own_folder() as folder:
        calm = lived(folder / "calm", None, seconds, every)
    with own_folder() as folder:
        busy = lived(folder / "busy", random.Random(f"{SEED} {number}"), seconds, every)
    return {
        "rate": round(100 * busy.rate / calm.rate, 1),
        "loss": above(calm.curve, busy.curve, lambda end: end.epoch),
        "loss_computed": above(calm.curve, busy.curve, lambda end: end.computed),
        "killed": busy.killed,
        "joined": busy.joined,
        "late": busy.late,
        "samples": [calm.curve[-1].computed, busy.curve[-1].computed],
        "epochs": [calm.curve[-1].epoch, busy.curve[-1].epoch],
        "lost": [calm.lost, busy.lost],
    }


class Lived:
    """What a swarm did from `begun` to `ended`, monotonic clock; `starts` and `ends` are of single peers meanwhile.

    A peer is alive from when it has joined; `late` counts those that took longer than JOIN_SECONDS for that.
    """

    def __init__(
        self,
        swarm: SmallSwarm,
        starts: dict[SmallPeer, float],
        ends: dict[SmallPeer, float],
        begun: float,
        ended: float,
    ) -> None:
        self.late = sum(is_late(peer, at, ends.get(peer, ended)) for peer, at in starts.items())
        self.killed, self.joined = len(ends), len(swarm.peers) - MOST
        stays = [
            max(0.0, ends.get(peer, ended) - max(begun, peer.named("joined")[0]["at"]))
            for peer in swarm.peers
            if peer.named("joined")
        ]
        confirmed = [event for peer in swarm.peers for event in peer.named("confirmed")]
        self.lost = sum(len(peer.named("lost")) for peer in swarm.peers)
        first = min(end["epoch"] for peer in swarm.peers for end in peer.named("epoch") if end["at"] > begun)
        counted = sum(event["samples"] for event in confirmed if event["epoch"] >= first)
        self.rate = counted / sum(stays)
        """Samples in confirmed contributions, a second of each peer that was alive."""
        self.curve = curve(swarm)


def is_late(newcomer: SmallPeer, started: float, ended: float) -> bool:
    """Whether it has not joined in time; one that was killed before that is not."""
    joined = next((event["at"] for event in newcomer.named("joined")), ended)
    return bool(min(joined, ended) - started > JOIN_SECONDS)


def curve(swarm: SmallSwarm) -> list[End]:
    first: dict[int, Event] = {}
    for end in sorted((end for peer in swarm.peers for end in peer.named("epoch")), key=lambda end: float(end["at"])):
        first.setdefault(end["epoch"], end)
    computed = [peer.named("computed") for peer in swarm.peers]
    return [
        End(epoch, sum(samples_until(end["at"], each) for each in computed), end["loss"])
        for epoch, end in sorted(first.items())
    ]


def samples_until(at: float, computed: list[Event]) -> int:
    """What a peer had computed then."""
    before = bisect_right(computed, at, key=lambda event: float(event["at"]))
    return int(computed[before - 1]["samples"]) if before else 0


def above(calm: list[End], busy: list[End], measure: Callable[[End], int]) -> float:
    """By how many percent the busy run's loss is above the calm one's, at the last `measure` that both reached."""
    where = min(measure(calm[-1]), measure(busy[-1]))
    was, is_now = (
        float(np.interp(where, [measure(end) for end in each], [end.loss for end in each])) for each in (calm, busy)
    )
    return round(100 * (is_now / was - 1), 2)


def lived(folder: Path, chosen: random.Random | None, seconds: float, every: float) -> Lived:
    """A swarm of MOST peers for `seconds`; with `chosen`, one is killed or another one joins `every` so many seconds."""
    with small_swarm(folder, "skep", TARGET, RATE) as swarm:
        for _ in range(MOST):
            swarm.add()
        swarm.wait(lambda: all(peer.named("epoch") for peer in swarm.peers), START_SECONDS)
        begun, starts, ends = time.monotonic(), dict[SmallPeer, float](), dict[SmallPeer, float]()
        while (now := time.monotonic()) < begun + seconds:
            if chosen and now >= begun + every * (1 + len(ends) + len(swarm.peers) - MOST):
                alive = [peer for peer in swarm.peers if peer not in ends]
                if len(alive) > LEAST:
                    victim = chosen.choice(alive)
                    victim.kill()
                    ends[victim] = time.monotonic()
                else:
                    starts[swarm.add()] = time.monotonic()
            time.sleep(0.2)
        return Lived(swarm, starts, ends, begun, time.monotonic())


def judged(rows: list[Measured]) -> list[Row]:
    if not rows:
        return []
    rates, losses, computed = ([row[name] for row in rows] for name in ("rate", "loss", "loss_computed"))
    late = [row["late"] for row in rows if "late" in row]
    return [
        Row("samples/s of those alive, least", min(rates), "%", None, rates, least=RATE_BOUND),
        *([Row(f"newcomers that took longer than {JOIN_SECONDS:g} s to join", sum(late), "", 0, late)] if late else []),
        Row(
            "final loss off the calm run's at equal samples as the swarm counts them",
            max(losses, key=abs),
            "%",
            LOSS_BOUND,
            losses,
            least=-LOSS_BOUND,
        ),
        Row("final loss above the calm run's at equal samples computed", max(computed), "%", LOSS_BOUND, computed),
    ]


PART = Part("churn", "a peer killed or joined every 20 s", 3, measure, judged)
