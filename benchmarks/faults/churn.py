"""The part `churn`: every 20 s a peer dies or another one joins, for five minutes, after five calm minutes.

Small peers of skep that learn a linear task. What they reach is compared with the calm run at the same number of
samples that were computed, by peers that were killed too: what these had computed of an epoch is no longer averaged.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import Row

from faults.places import own_folder
from faults.rows import Measured, Part
from faults.small_swarm import Event, SmallPeer, SmallSwarm, small_swarm

SEED = 15
MOST, LEAST = 4, 3
RATE = 8.0
TARGET = int(MOST * RATE * 10)
SECONDS, EVERY = 300.0, 20.0
START_SECONDS = 180.0
RATE_BOUND, LOSS_BOUND = 90.0, 2.0
"""Percent."""
Curve = list[tuple[int, float]]
"""The samples computed so far by all peers and the loss, when each epoch has ended for its first peer."""


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
            "loss": above_at_equal_samples(calm.curve, busy.curve),
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


def curve(swarm: SmallSwarm) -> Curve:
    first: dict[int, Event] = {}
    for end in sorted((end for peer in swarm.peers for end in peer.named("epoch")), key=lambda end: float(end["at"])):
        first.setdefault(end["epoch"], end)
    computed = [peer.named("computed") for peer in swarm.peers]
    return [(sum(samples_until(end["at"], each) for each in computed), end["loss"]) for _, end in sorted(first.items())]


def samples_until(at: float, computed: list[Event]) -> int:
    """What a peer had computed then."""
    before = bisect_right(computed, at, key=lambda event: float(event["at"]))
    return int(computed[before - 1]["samples"]) if before else 0


def above_at_equal_samples(calm: Curve, busy: Curve) -> float:
    """By how many percent the busy run's loss is above the calm one's, where the one with fewer samples ended."""
    samples = min(calm[-1][0], busy[-1][0])
    was, is_now = (float(np.interp(samples, *zip(*each, strict=True))) for each in (calm, busy))
    return round(100 * (is_now / was - 1), 2)


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
        Row(
            "final loss off the calm run's at equal samples",
            max(losses, key=abs),
            "%",
            LOSS_BOUND,
            losses,
            least=-LOSS_BOUND,
        ),
    ]


PART = Part("churn", "a peer killed or joined every 20 s", 3, measure, judged)
