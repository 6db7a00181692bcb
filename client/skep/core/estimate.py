"""What a project would take of this computer and give to the swarm, estimated before anything is downloaded. Pure.

It must not judge whether the project fits; that is `fit`. Nothing here is measured on this computer: once it trains, what
the worker reports stands instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skep.core import fit
from skep.core.manifest_types import Manifest
from skep.core.manifest_warnings import PROCESSOR_FLOPS, lone_processor_rate
from skep.core.model import Device

HOUR: Final = 3600
CORES: Final = 2
"""Of the processor on which PROCESSOR_FLOPS was reached."""
CARD_FLOPS: Final = 2e12
"""Floating point operations a second that training reaches on a small card: a few tenths of what such cards are sold with."""
PEERS: Final = 4
"""Computers like this one in the swarm that is reckoned with, this one included."""


@dataclass(frozen=True)
class Estimate:
    """`memory`, `device` and `disk` in bytes, `device` of a GPU's memory and None without one.

    `samples` is what this computer processes in an hour at full share; `up` and `down` are bytes an hour in a swarm of PEERS
    computers like this one, `most` the bytes an hour each way that no swarm goes beyond.
    """

    memory: int
    device: int | None
    disk: int
    samples: int
    up: int
    down: int
    most: int


def estimate(manifest: Manifest, devices: Sequence[Device], *, cores: int) -> Estimate:
    """`cores` are the processor's. The disk's part is what the manifest allows for."""
    card = fit.best_gpu(devices)
    needed = fit.needed(manifest, on_gpu=card is not None)
    rate = samples_a_second(manifest, on_gpu=card is not None, cores=cores)
    sync, traffic = manifest.sync, fit.traffic_per_epoch(manifest)
    fastest = HOUR / sync.matchmaking_seconds
    epochs = min(fastest, HOUR * PEERS * rate / sync.target_batch_size)
    # each peer of n keeps one part of n of what it averages to itself
    part = (PEERS - 1) / PEERS
    return Estimate(
        memory=round(needed.memory),
        device=None if needed.device is None else round(needed.device),
        disk=round(needed.disk),
        samples=round(rate * HOUR),
        up=round(traffic.up * part * epochs),
        down=round(traffic.down * part * epochs),
        most=round(max(traffic.up, traffic.down) * fastest),
    )


def samples_a_second(manifest: Manifest, *, on_gpu: bool, cores: int) -> float:
    """At full share, from the number of parameters alone: right to a factor of a few."""
    flops = CARD_FLOPS if on_gpu else PROCESSOR_FLOPS * max(1, cores) / CORES
    return lone_processor_rate(manifest) * flops / PROCESSOR_FLOPS
