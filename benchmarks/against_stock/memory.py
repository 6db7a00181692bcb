"""Memory of peers that train one sample at a time, so that activations are equal and small."""

from __future__ import annotations

import contextlib
import statistics
import threading

import psutil
from peers import Peer, SkepPeer, Swarm
from report import Unmeasured, in_turn

from against_stock.rows import Row
from against_stock.running import KINDS, Make, at_epoch, fresh_swarm, running, step_batch

TARGET = 64
"""Samples of an epoch, for which the step batch is one sample."""


def measure_memory(repeats: int) -> list[Row]:
    """Bytes per parameter of the whole process tree, the fixed cost (the 0.45 M model) subtracted: while it trains
    alone, the median over an epoch.

    The peak is the largest of a peer that trains and sends its state, and of the newcomer, from its start on.
    """
    after: dict[str, list[float]] = {"skep": [], "stock": []}
    peak: dict[str, list[float]] = {"skep": [], "stock": []}
    for repeat in range(repeats):
        for kind in in_turn(KINDS, repeat):
            small, large = memory_of(KINDS[kind], "0.45 M"), memory_of(KINDS[kind], "22 M")
            more = large[0] - small[0]
            after[kind].append((large[1] - small[1]) / more)
            peak[kind].append((large[2] - small[2]) / more)
    return [
        Row(
            "memory after the start, whole process tree",
            "bytes per parameter",
            after["skep"],
            after["stock"],
            at_most=0.8,
        ),
        Row("peak while loading and serving a state", "bytes per parameter", peak["skep"], peak["stock"], at_most=0.8),
    ]


def memory_of(make: Make, model: str) -> tuple[int, float, int]:
    """Parameters; bytes after the start, and at the peak. Raises Unmeasured when activations differ."""
    with (
        fresh_swarm(model, target_batch_size=TARGET) as shared,
        running(shared, make) as (first,),
    ):
        if step_batch(shared) != 1 or (isinstance(first, SkepPeer) and first.joined["micro_batch"] != 1):
            raise Unmeasured("a micro-batch has more than one sample, whose activations differ between the kinds")
        first.wait_for(at_epoch(1))
        alone = Memory(first)
        first.wait_for(at_epoch(2))
        after = statistics.median(alone.end())
        watched = [Memory(first)]

        def make_watched(shared: Swarm) -> Peer:
            made = make(shared)
            watched.append(Memory(made))
            return made

        with running(shared, make_watched) as (second,):
            second.wait_for(at_epoch(4))
            return shared.parameters, after, max(max(each.end()) for each in watched)


class Memory:
    """The memory of a peer's process tree, sampled ten times a second until `end`."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._over = peer, threading.Event()
        self._values: list[int] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> list[int]:
        """What was seen. Raises Unmeasured when the peer ended before."""
        ended = not self._thread.is_alive()
        self._over.set()
        self._thread.join()
        if ended or not self._values:
            raise Unmeasured("a peer ended while its memory was measured")
        return self._values

    def _watch(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self._over.wait(0.1):
                self._values.append(self._peer.memory())
