"""The nouns of skep as frozen dataclasses: what the engine knows and publishes.

It must hold data only: no input or output, no decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Remedy(StrEnum):
    """Where a front end leads somebody who has a problem; beside these it may be "setting:" and a setting's key."""

    DIAGNOSTICS = "diagnostics"
    PROJECTS = "projects"
    SETTINGS = "settings"
    REPORT = "report"


@dataclass(frozen=True)
class Problem:
    """What happened, in one sentence, and what the person can do about it; `remedy` is a Remedy, or a setting's."""

    title: str
    hint: str = ""
    remedy: str = field(default=Remedy.DIAGNOSTICS.value, compare=False)


class DeviceKind(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    APPLE = "apple"
    CPU = "cpu"


@dataclass(frozen=True)
class PowerCap:
    """The power limit a card has now, and the bounds in which it can be set, all in watts; None where it has none.

    `refused` is why skep cannot change it, in a sentence; empty when it can.
    """

    watts: float | None = None
    lowest: float | None = None
    highest: float | None = None
    refused: str = ""


@dataclass(frozen=True)
class Device:
    """One thing that can compute, as the engine sees it without torch.

    Bytes for memory, degrees Celsius, watts, utilisation 0..1; None where there is no source.
    `unusable` is the reason in plain words why training cannot use it; None when it can. `bf16` tells whether it computes
    in bfloat16.
    """

    kind: DeviceKind
    index: int
    name: str
    memory_total: int | None = None
    memory_free: int | None = None
    driver: str | None = None
    temperature: float | None = None
    power: float | None = None
    utilisation: float | None = None
    unusable: str | None = None
    bf16: bool | None = None

    @property
    def choice(self) -> str:
        """What the setting compute.device calls it, which is torch's name: AMD's GPUs are cuda devices too."""
        match self.kind:
            case DeviceKind.CPU:
                return "cpu"
            case DeviceKind.APPLE:
                return "mps"
            case DeviceKind.NVIDIA | DeviceKind.AMD:
                return f"cuda:{self.index}"


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
    detail: str = ""


class GpuMemory(StrEnum):
    """What the worker may hold of the GPU's memory."""

    KEEP = "keep"
    """All that it needs."""
    SHRINK = "shrink"
    """Nothing beyond the model itself: caches emptied, the smallest micro-batches."""
    RELEASE = "release"
    """Nothing: the model waits in RAM."""


@dataclass(frozen=True)
class Allowance:
    """What the policy grants now: compute share 0..1, and the sentence that says why.

    `until` is when the allowance changes by itself, in seconds since the epoch (wall clock), or None. `rule` names the rule
    that won. `present` tells that somebody is, or may be, at this computer. Without `network` the worker is out of the swarm.
    """

    share: float
    reason: str
    until: float | None = None
    rule: str = "away"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    network: bool = True


@dataclass(frozen=True)
class Change:
    """The allowance as it was from a moment on; `at` is wall clock seconds.

    `project` is the id of the project that this computer was in, "" from when it was in none.
    """

    at: float
    project: str
    share: float
    rule: str
    reason: str
    memory: GpuMemory = GpuMemory.KEEP
    network: bool = True


@dataclass(frozen=True)
class Reaction:
    """How long giving back took: from what called for it (an input, say) to the worker's word that it obeys.

    `at` is wall clock seconds of that word, `share` what was given back to.
    """

    at: float
    rule: str
    share: float
    seconds: float


@dataclass(frozen=True)
class PauseState:
    """The person's own pause; `until` is wall clock seconds, or None: until Resume."""

    until: float | None = None


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


@dataclass(frozen=True)
class Evaluation:
    """Loss on the held-out shard, in nats per token, at an epoch."""

    epoch: int
    loss: float


class ContributionState(StrEnum):
    PENDING = "pending"
    CONFIRMED = "confirmed"
    LOST = "lost"


@dataclass(frozen=True)
class Contribution:
    """Samples this computer put into one epoch.

    Pending until the round is over; confirmed when another peer's data was really averaged with ours and the
    optimizer used the result; else lost, with the reason in words. `peers` are the others in that round.
    `swarm` is how many samples the whole swarm puts into the epoch, where it is confirmed and that is known, else 0.
    """

    id: str
    epoch: int
    samples: int
    state: ContributionState
    reason: str = ""
    peers: int = 0
    swarm: int = 0


@dataclass(frozen=True)
class Tally:
    """How many contributions and samples are in one state."""

    contributions: int = 0
    samples: int = 0


@dataclass(frozen=True)
class Totals:
    pending: Tally = field(default_factory=Tally)
    confirmed: Tally = field(default_factory=Tally)
    lost: Tally = field(default_factory=Tally)


@dataclass(frozen=True)
class ShardRef:
    """A file of training samples, known by its hash. `sha256` is 64 lower-case hex digits."""

    sha256: str
    bytes: int
    samples: int


@dataclass(frozen=True)
class FileRef:
    """A file a recipe needs beside its samples, known by its hash.

    `name` is what it is called on screen; `bytes` 0 means that its size is not known before it is here.
    """

    name: str
    sha256: str
    bytes: int
    address: str


@dataclass(frozen=True)
class TextLayout:
    """Shards of token ids below `vocabulary`, `sequence_length` to a sample."""

    sequence_length: int
    vocabulary: int


@dataclass(frozen=True)
class ImageLayout:
    """Shards of square images of `size` x `size` pixels, each with a label below `classes`."""

    channels: int
    size: int
    classes: int


Layout = TextLayout | ImageLayout


@dataclass(frozen=True)
class ShardIndex:
    """The shards of a project. `held_out` is never trained on; it may be empty.

    `files` are what its recipe needs beside them; the manifest names those, not the index on the web.
    """

    layout: Layout
    shards: tuple[ShardRef, ...]
    held_out: tuple[ShardRef, ...] = ()
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True)
class Project:
    """A verified manifest in this home. `manifest` is its raw JSON text, already checked."""

    id: str
    title: str
    run_id: str
    fingerprint: str
    revision: int
    manifest: str
    source: str
