"""Swarms of one kind of peer, and what is seen of their epochs and rounds."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from peers import LoopPeer, Peer, SkepPeer, Swarm, is_progress, swarm
from report import Unmeasured

from skep.worker.training.trainer import step_batch_for

EVERY_DELAY = {"delay_optimizer_step": True, "delay_grad_averaging": True, "delay_state_averaging": True}
SETTLED_SECONDS = 60.0
"""How long what became of a round is waited for."""
Make = Callable[[Swarm], Peer]


def step_batch(shared: Swarm) -> int:
    """Samples of one step of hivemind's optimizer: those that skep chooses, for all kinds of peers."""
    return step_batch_for(shared.manifest["sync"]["target_batch_size"])


def make_skep(shared: Swarm) -> Peer:
    return SkepPeer(shared)


def make_stock(shared: Swarm) -> Peer:
    return LoopPeer("stock_peer.py", shared, step_batch(shared))


def make_bare(shared: Swarm) -> Peer:
    return LoopPeer("bare_loop.py", shared, step_batch(shared))


KINDS: dict[str, Make] = {"skep": make_skep, "stock": make_stock}


@contextmanager
def fresh_swarm(model: str, **sync: Any) -> Iterator[Swarm]:
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder, swarm(Path(folder), model, **sync) as shared:
        yield shared


@contextmanager
def running(shared: Swarm, *makes: Make) -> Iterator[list[Peer]]:
    """Peers started one after the other, each after the previous one has counted samples."""
    peers: list[Peer] = []
    try:
        for make in makes:
            peers.append(make(shared))
            peers[-1].wait_for(counted if make is not make_bare else is_progress)
            check_step_batch(peers[-1], shared)
        yield peers
    finally:
        for peer in peers:
            peer.kill()


def check_step_batch(peer: Peer, shared: Swarm) -> None:
    """Raises Unmeasured when skep does not take the step batch that others get."""
    if isinstance(peer, SkepPeer) and peer.joined["step_batch"] != step_batch(shared):
        raise Unmeasured(f"skep's step batch is {peer.joined['step_batch']}, that of others {step_batch(shared)}")


def counted(event: dict[str, Any]) -> bool:
    return bool(event["event"] == "counted")


def at_epoch(epoch: int) -> Callable[[dict[str, Any]], bool]:
    return lambda event: is_progress(event) and event["epoch"] >= epoch


def seconds_of_epochs(history: list[dict[str, Any]]) -> list[float]:
    """Of each whole epoch in a peer's progress reports; of one that was not seen to begin and end, nothing is known."""
    begun: dict[int, float] = {}
    for event in filter(is_progress, history):
        begun.setdefault(event["epoch"], event["seconds"])
    whole = list(begun.items())[1:]  # the first was running when it was first seen
    return [end - start for (before, start), (after, end) in pairwise(whole) if after == before + 1]


def rounds(peers: list[Peer], name: str) -> dict[tuple[int, int], int]:
    """The samples of those peers' "contribution" or "confirmed" events, by peer and epoch."""
    return {
        (number, event["epoch"]): event["samples"] for number, peer in enumerate(peers) for event in peer.named(name)
    }


def wait_for_rounds(peers: list[Peer], epochs: range) -> None:
    """Until each peer has said what became of its part in these epochs, or SETTLED_SECONDS have passed."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while time.monotonic() < deadline:
        if all(
            epochs.stop - 1 in {event["epoch"] for event in peer.history if event["event"] in {"confirmed", "lost"}}
            for peer in peers
        ):
            return
        time.sleep(0.1)


def samples_of_rounds(peers: list[Peer], name: str, epochs: range) -> list[float]:
    """Samples of all peers in the round of each of these epochs: in all `contribution`s, or in those `confirmed`."""
    found = rounds(peers, name)
    return [float(sum(samples for (_, epoch), samples in found.items() if epoch == wanted)) for wanted in epochs]


def missing_rounds(peers: list[Peer], epochs: range) -> list[int]:
    """Epochs that some peer did not average with another one."""
    confirmed = rounds(peers, "confirmed")
    return [epoch for epoch in epochs if any((number, epoch) not in confirmed for number in range(len(peers)))]


def typical_epoch(history: list[dict[str, Any]]) -> float:
    """Median of the seconds of its epochs. Raises Unmeasured when none was whole."""
    seconds = seconds_of_epochs(history)
    if not seconds:
        raise Unmeasured("no epoch was seen from its begin to its end")
    return statistics.median(seconds)
