"""Phases of the engine and stages of joining, what front ends say of them, and the worker's latest report. Pure."""

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

    @property
    def label(self) -> Text:
        match self:
            case Stage.HARDWARE:
                return Text("stage.hardware")
            case Stage.DATA:
                return Text("stage.data")
            case Stage.PEERS:
                return Text("stage.peers")
            case Stage.WARM_UP:
                return Text("stage.warm_up")
            case Stage.STATE:
                return Text("stage.state")


def restarting(at: float | None, now: float) -> Text:
    """The sentence of the phase recovering; the next attempt is `at`, in wall-clock seconds."""
    if at is None or at <= now:
        return Text("phase.trying_again")
    return Text("phase.trying_again_in", seconds=at - now)


def leaving(until: float | None, now: float, *, finished: bool = False, saving: bool = False) -> Text:
    """The sentence of the phase leaving, which lasts `until` a time in wall-clock seconds at most, if it waits at all.

    It waits for the round, or when the run is `finished` for peers that load its state, or for the disk while `saving`.
    """
    if until is None:
        return Text("phase.leaving")
    left = max(0.0, until - now)
    if saving:
        return Text("phase.saving", seconds=left)
    return Text("phase.leaving_handing_over" if finished else "phase.leaving_after_round", seconds=left)


class Wait(StrEnum):
    """What the training thread waits for."""

    NOTHING = ""
    DATA = "data"
    MEMORY = "memory"
    SWARM = "swarm"
    """A round, or the swarm's state."""


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
    `samples_accumulated` of `target_batch_size` is the whole swarm's progress in this epoch, which ends in
    `seconds_left` at the present rates; None while that cannot be said.
    `share_asked` is the share granted, `share_measured` the one used, 0..1; None before it is measured. Seconds and
    bytes are totals since joining; `waiting_seconds` is neither computing nor pausing to keep to the share.
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
    seconds_left: float | None = None
