"""How long a newcomer takes to its first counted sample, and to its first average with others."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager
from typing import Any

from peers import Peer, SkepPeer, Swarm, is_progress
from report import Unmeasured, in_turn

from against_stock.rows import Row, off, words
from against_stock.running import (
    EVERY_DELAY,
    KINDS,
    at_epoch,
    fresh_swarm,
    running,
    seconds_of_epochs,
    step_batch,
    typical_epoch,
)

JOIN_TARGET = 127
"""Samples of an epoch. A step batch is one sample, and an epoch longer than the join of either kind."""
STATE_BYTES = 12
"""Bytes per parameter: fp32 weights and Adam's two moments, which a newcomer must download."""
JOIN_SECONDS = 6
NEWCOMER_SECONDS = 60
SHARE, NEWCOMER_SHARE = 0.3, 0.05
"""So that the processor has room for a newcomer's start, and epochs are hardly shorter with it than without."""
LONG = 1_000_000
"""Samples of an epoch that does not end while a rate is measured."""
RATE_SECONDS = 15.0
OFF = 0.2
LEAST_EPOCHS = 4
TRIES = 3


def measure_join(repeats: int) -> list[Row]:
    """Process start to first counted sample beside one training peer; and the bytes that a newcomer of ours
    downloads. The newcomer starts after an epoch has ended.
    """
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    downloaded = []
    for repeat in range(repeats):
        for kind in in_turn(KINDS, repeat):
            make = KINDS[kind]
            with fresh_swarm("22 M", target_batch_size=JOIN_TARGET) as shared, running(shared, make) as (peer,):
                note = f"a step batch is {step_batch(shared)} sample"
                peer.wait_for(at_epoch(1))
                with running(shared, make) as (newcomer,):
                    seconds[kind].append(time.monotonic() - newcomer.begun)
                    if kind == "skep":
                        progress = newcomer.wait_for(is_progress)
                        downloaded.append(progress["received"] / (STATE_BYTES * shared.parameters))
    return [
        Row(
            "process start to first counted sample, 22 M parameters",
            "s",
            seconds["skep"],
            seconds["stock"],
            at_most=0.7,
            note=note,
        ),
        Row("the same, by itself", "s", seconds["skep"], at_most=JOIN_SECONDS, note=note),
        Row("bytes received until then, in states", "states", downloaded, at_most=1.1),
    ]


def measure_newcomers(repeats: int, *, length: int) -> list[Row]:
    """Joins that averaged with the others within 60 s, of `repeats`, at epochs that take `length` seconds meanwhile.

    The target batch is what two peers at SHARE compute in this time. When the epochs during the joins were off by more
    than OFF, it is corrected by what they took, and the joins are repeated, up to TRIES times in all; then it raises
    Unmeasured. Joins of which one is late count at once: it may itself have made the epochs longer.
    """
    target = round(rate_of_both() * length)
    for _ in range(TRIES):
        took, history = joins(target, repeats)
        row = row_of(length, target, took, seconds_of_epochs(history))
        if row.missed:
            return [row]
        typical = typical_epoch(history)
        if not off(typical, length, OFF):
            return [row]
        target = corrected(target, length, typical)
    raise Unmeasured(f"epochs of {length} s: they took {typical:.1f} s with the last of {TRIES} targets")


def joins(target: int, repeats: int) -> tuple[list[float], list[dict[str, Any]]]:
    """Seconds of each join, and what one of the two others reported meanwhile: whole epochs too when none failed."""
    with paced(target) as shared, running(shared, make_paced, make_paced) as (first, _):
        first.wait_for(at_epoch(first.wait_for(is_progress)["epoch"] + 1))
        begun = first.latest(is_progress)
        took = [seconds_to_average(shared) for _ in range(repeats)]
        if math.inf not in took:
            first.wait_for(at_epoch(begun["epoch"] + LEAST_EPOCHS))
        return took, since(first, begun)


def rate_of_both() -> float:
    with paced(LONG) as shared, running(shared, make_paced, make_paced) as peers:
        return sum(peer.rate(RATE_SECONDS) for peer in peers)


def paced(target: int) -> AbstractContextManager[Swarm]:
    return fresh_swarm("3.3 M", target_batch_size=target, matchmaking_seconds=3.5, **EVERY_DELAY)


def make_paced(shared: Swarm) -> Peer:
    return SkepPeer(shared, share=SHARE)


def since(peer: Peer, event: dict[str, Any]) -> list[dict[str, Any]]:
    return peer.history[peer.history.index(event) :]


def corrected(target: int, wanted: float, took: float) -> int:
    """The target batch for epochs of `wanted` seconds, where those of `target` took so many."""
    return max(2, round(target * wanted / took))


def row_of(length: int, target: int, took: list[float], epochs: list[float]) -> Row:
    joined = sum(seconds <= NEWCOMER_SECONDS for seconds in took)
    return Row(
        f"joins that averaged within {NEWCOMER_SECONDS} s, epochs of {length} s, of {len(took)}",
        "joins",
        [float(joined)],
        at_least=float(len(took)),
        note=f"after {', '.join(f'{seconds:.0f}' for seconds in took)} s; {len(epochs)} epochs of {target} samples took "
        f"{words(epochs)} s meanwhile",
    )


def seconds_to_average(shared: Swarm) -> float:
    newcomer = SkepPeer(shared, share=NEWCOMER_SHARE)
    try:
        newcomer.wait_for(lambda event: event["event"] == "confirmed", within=120)
    except (TimeoutError, RuntimeError):  # the second of one that has ended
        return math.inf
    else:
        return time.monotonic() - newcomer.begun
    finally:
        newcomer.stop() if newcomer.process.poll() is None else newcomer.kill()
