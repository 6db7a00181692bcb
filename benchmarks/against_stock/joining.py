"""How long a newcomer takes to its first counted sample, and to its first average with others."""

from __future__ import annotations

import statistics
import time
from contextlib import AbstractContextManager
from typing import Any

from peers import Peer, SkepPeer, Swarm, is_progress
from report import Unmeasured

from against_stock.rows import Row, off
from against_stock.running import (
    EVERY_DELAY,
    KINDS,
    at_epoch,
    fresh_swarm,
    running,
    seconds_of_epochs,
    typical_epoch,
)

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
TRIES = 3


def measure_join(repeats: int) -> list[Row]:
    """Process start to first counted sample beside one training peer; and the bytes that a newcomer of ours
    downloads.

    skep reports once a second, so that its first counted sample is seen up to a second late.
    """
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    downloaded = []
    for _ in range(repeats):
        for kind, make in KINDS.items():
            with fresh_swarm("22 M", target_batch_size=64) as shared, running(shared, make) as (peer,):
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
        ),
        Row("the same, by itself", "s", seconds["skep"], at_most=JOIN_SECONDS),
        Row("bytes received until then, in states", "states", downloaded, at_most=1.1),
    ]


def measure_newcomers(repeats: int, *, length: int) -> list[Row]:
    """Joins that averaged with the others within 60 s, of `repeats`, at epochs that really take `length` seconds.

    Two peers at SHARE; the target batch is what both together compute in this time, and is corrected up to TRIES times
    by what the epochs took. Raises Unmeasured when the epochs during the joins were off by more than OFF.
    """
    target = round(rate_of_both() * length)
    for _ in range(TRIES):
        with paced(target) as shared, running(shared, make_paced, make_paced) as (first, _):
            begun = first.wait_for(at_epoch(first.wait_for(is_progress)["epoch"] + 2))
            first.wait_for(at_epoch(begun["epoch"] + 3))
            alone = typical_epoch(since(first, begun))
            if off(alone, length, OFF):
                target = corrected(target, length, alone)
                continue
            joined = first.latest(is_progress)
            took = [seconds_to_average(shared) for _ in range(repeats)]
            first.wait_for(at_epoch(first.latest(is_progress)["epoch"] + 1))
            return [row_of(length, target, took, seconds_of_epochs(since(first, joined)))]
    raise Unmeasured(f"epochs of {length} s: they took {alone:.1f} s with the last of {TRIES} targets")


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
    """Raises Unmeasured when there were no such epochs."""
    if not epochs or off(statistics.median(epochs), length, OFF):
        seen = f"{statistics.median(epochs):.1f} s" if epochs else "never whole"
        raise Unmeasured(f"epochs of {length} s: {seen} while others joined")
    return Row(
        f"joins that averaged within {NEWCOMER_SECONDS} s, epochs of {length} s, of {len(took)}",
        "joins",
        [float(sum(seconds <= NEWCOMER_SECONDS for seconds in took))],
        at_least=float(len(took)),
        note=f"after {', '.join(f'{seconds:.0f}' for seconds in took)} s; {len(epochs)} epochs of {target} samples took "
        f"{statistics.median(epochs):.1f} s ({min(epochs):.1f} to {max(epochs):.1f}) meanwhile",
    )


def seconds_to_average(shared: Swarm) -> float:
    newcomer = SkepPeer(shared, share=NEWCOMER_SHARE)
    try:
        newcomer.wait_for(lambda event: event["event"] == "confirmed", within=120)
    except TimeoutError:
        return float("inf")
    else:
        return time.monotonic() - newcomer.begun
    finally:
        newcomer.stop()
