"""The part `churn`: every 20 s a peer dies or another one joins, for five minutes, after five calm minutes.

Small peers of skep that learn a linear task. What they reach is compared with the calm run at the same number of
samples in averages: a killed peer cannot say any more that its last contribution was confirmed. An epoch in which a
peer dies may lack that peer's samples, and counts none of them; so at equal samples a swarm with deaths has made more
steps, and may be better.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from report import Row

from faults.places import own_folder
from faults.rows import Measured, Part
from faults.small_swarm import SmallPeer, SmallSwarm, small_swarm

SEED = 15
MOST, LEAST = 4, 3
RATE = 8.0
TARGET = int(MOST * RATE * 10)
SECONDS, EVERY = 300.0, 20.0
START_SECONDS = 180.0
RATE_BOUND, LOSS_BOUND = 90.0, 2.0
"""Percent."""


def measure(numbers: range) -> Iterator[Measured]:
    for number in numbers:
        with own_folder() as folder:
            calm = lived(folder / "calm", None, SECONDS)
        with own_folder() as folder:
            busy = lived(folder / "busy", random.Random(f"{SEED} {number}"), SECONDS)
        yield {
            "number": number,
            "seed": SEED,
            "rate": round(100 * busy.rate / calm.rate, 1),
            "loss": round(100 * (busy.curve[-1][1] / at_equal(calm.curve, busy.curve[-1][0]) - 1), 2),
            "killed": busy.killed,
            "joined": busy.joined,
            "samples": [calm.curve[-1][0], busy.curve[-1][0]],
            "lost": [calm.lost, busy.lost],
        }


class Lived:
    """What a swarm did from `begun` to `ended`, monotonic clock."""

    def __init__(self, swarm: SmallSwarm, ends: dict[SmallPeer, float], begun: float, ended: float) -> None:
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


def curve(swarm: SmallSwarm) -> list[tuple[int, float]]:
    """The samples in averages so far and the loss, at the end of each epoch."""
    by_epoch: dict[int, int] = {}
    losses: dict[int, float] = {}
    for peer in swarm.peers:
        for event in peer.named("averaged"):
            by_epoch[event["epoch"]] = max(by_epoch.get(event["epoch"], 0), event["samples"])
        losses |= {end["epoch"]: end["loss"] for end in peer.named("epoch")}
    points, total = [], 0
    for epoch in sorted(by_epoch.keys() & losses.keys()):
        total += by_epoch[epoch]
        points.append((total, losses[epoch]))
    return points


def at_equal(curve: list[tuple[int, float]], samples: int) -> float:
    """The loss of a curve at this number of samples, between its points on a straight line."""
    for (left, before), (right, after) in pairwise(curve):
        if left <= samples <= right:
            return before + (after - before) * (samples - left) / (right - left)
    return curve[-1][1] if samples > curve[-1][0] else curve[0][1]


def lived(folder: Path, chosen: random.Random | None, seconds: float) -> Lived:
    """A swarm of MOST peers for `seconds`; with `chosen`, one is killed or another one joins every EVERY seconds."""
    with small_swarm(folder, "skep", TARGET, RATE) as swarm:
        for _ in range(MOST):
            swarm.add()
        swarm.wait(lambda: all(peer.named("epoch") for peer in swarm.peers), START_SECONDS)
        begun, ends = time.monotonic(), dict[SmallPeer, float]()
        while (now := time.monotonic()) < begun + seconds:
            if chosen and now >= begun + EVERY * (1 + len(ends) + len(swarm.peers) - MOST):
                alive = [peer for peer in swarm.peers if peer not in ends]
                if len(alive) > LEAST:
                    victim = chosen.choice(alive)
                    victim.kill()
                    ends[victim] = time.monotonic()
                else:
                    swarm.add()
            time.sleep(0.2)
        return Lived(swarm, ends, begun, time.monotonic())


def judged(rows: list[Measured]) -> list[Row]:
    rates, losses = [row["rate"] for row in rows], [row["loss"] for row in rows]
    if not rows:
        return []
    return [
        Row("samples/s of those alive, least", min(rates), "%", None, rates, least=RATE_BOUND),
        Row("final loss at equal samples, highest above the calm run's", max(losses), "%", LOSS_BOUND, losses),
        Row("final loss at equal samples, lowest", min(losses), "%", None, losses),
    ]


PART = Part("churn", "a peer killed or joined every 20 s", 3, measure, judged)
