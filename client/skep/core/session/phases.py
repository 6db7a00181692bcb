"""Phases of the engine, stages of joining, and the worker's latest progress report. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skep.core.text import NOTHING, Text


class Phase(StrEnum):
    """The phase of the engine; `session.step` has a diagram of the transitions."""

    IDLE = "idle"
    JOINING = "joining"
    TRAINING = "training"
    PAUSED = "paused"
    RECOVERING = "recovering"
    LEAVING = "leaving"


class Stage(StrEnum):
    """The stages of joining, in order."""

    HARDWARE = "hardware"
    DATA = "data"
    PEERS = "peers"
    WARM_UP = "warm-up"
    STATE = "state"


@dataclass(frozen=True)
class StageProgress:
    """Progress of one stage, `fraction` 0..1; `detail` is a short phrase, such as "3 of 8 shards"."""

    stage: Stage
    fraction: float
    detail: Text = NOTHING


@dataclass(frozen=True)
class SwarmProgress:
    """The worker's latest report.

    `peers` counts the *other* peers whose data was averaged in the last verified round.
    `samples_accumulated` of `target_batch_size` is the whole swarm's progress in this epoch.
    Seconds are totals since joining; `cpu_seconds` is the training thread's own processor time.
    """

    epoch: int
    peers: int
    loss: float | None
    samples_per_second: float
    share_asked: float
    share_measured: float | None
    samples_accumulated: int
    target_batch_size: int
    compute_seconds: float
    nap_seconds: float
    waiting_seconds: float
    bytes_sent: int
    bytes_received: int
