"""Where the engine stands and what the worker last reported of the swarm. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from skep.core.text import NOTHING, Text


class Phase(StrEnum):
    """Where the engine stands; the transitions are drawn in `session`."""

    IDLE = "idle"
    JOINING = "joining"
    TRAINING = "training"
    PAUSED = "paused"
    RECOVERING = "recovering"
    LEAVING = "leaving"


class Stage(StrEnum):
    """The steps of joining, in their order."""

    HARDWARE = "hardware"
    DATA = "data"
    PEERS = "peers"
    WARM_UP = "warm-up"
    STATE = "state"


@dataclass(frozen=True)
class StageProgress:
    """`fraction` 0..1 of one stage; `detail` is a short phrase, such as "3 of 8 shards"."""

    stage: Stage
    fraction: float
    detail: Text = NOTHING


@dataclass(frozen=True)
class SwarmProgress:
    """What the worker last reported.

    `peers` counts the *other* peers whose data was really averaged in the last verified round.
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
