"""Memory of peers that train one sample at a time, so that activations are equal and small."""

from __future__ import annotations

import threading
from typing import Self

from peers import Peer, SkepPeer
from report import Unmeasured

from against_stock.rows import Row
from against_stock.running import KINDS, Make, at_epoch, fresh_swarm, running, step_batch

TARGET = 64
"""Samples of an epoch, for which the step batch is one sample."""


def measure_memory(repeats: int) -> list[Row]:
    """Bytes per parameter of the whole process tree, the fixed cost (the 0.45 M model) subtracted.

    The peak is the largest of a peer that trains and sends its state, and of the newcomer that loads it.
    """
    after: dict[str, list[float]] = {"skep": [], "stock": []}
    peak: dict[str, list[float]] = {"skep": [], "stock": []}
    for _ in range(repeats):
        for kind, make in KINDS.items():
            small, large = memory_of(make, "0.45 M"), memory_of(make, "22 M")
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


def memory_of(make: Make, model: str) -> tuple[int, int, int]:
    """Parameters; bytes after the start, and at the peak. Raises Unmeasured when activations differ."""
    with fresh_swarm(model, target_batch_size=TARGET) as shared, running(shared, make) as (first,):
        if step_batch(shared) != 1 or (isinstance(first, SkepPeer) and first.joined["micro_batch"] != 1):
            raise Unmeasured("a micro-batch has more than one sample, whose activations differ between the kinds")
        first.wait_for(at_epoch(1))
        after = first.memory()
        with Peak(first) as served, running(shared, make) as (second,), Peak(second) as loaded:
            second.wait_for(at_epoch(3))
        return shared.parameters, after, max(served.bytes, loaded.bytes)


class Peak:
    """The largest memory of a peer's process tree, sampled ten times a second."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._over = peer, threading.Event()
        self.bytes = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1) and self._peer.process.poll() is None:
            self.bytes = max(self.bytes, self._peer.memory())
