"""Everything that can happen to the engine, and everything the engine can ask for.

Commands come from a person, events from the outside, effects go to the adapters. They are data: no behaviour here.
The ones that travel between engine and worker are listed in `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skep.core.conditions import Seen
from skep.core.model import (
    Allowance,
    Change,
    Contribution,
    Evaluation,
    FileRef,
    GpuMemory,
    PowerCap,
    Problem,
    Project,
    Reaction,
    ShardIndex,
    ShardRef,
    Stage,
    SwarmProgress,
)
from skep.core.usage import Quarter

# --- commands: what a person asks for


@dataclass(frozen=True)
class Join:
    """Join `project`; `seeds` are extra multiaddresses to try beside the manifest's own."""

    project: Project
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leave:
    """Leave the swarm, keep the front end: after the round at the end of this epoch, or `now`."""

    now: bool = False


@dataclass(frozen=True)
class Pause:
    """Stop computing until `until` (wall clock seconds), or until Resume when None."""

    until: float | None = None


@dataclass(frozen=True)
class Resume:
    """End a pause."""


@dataclass(frozen=True)
class ChangeSettings:
    """Set settings by key; the values were parsed and checked already."""

    values: dict[str, bool | int | float | str]


@dataclass(frozen=True)
class Quit:
    """Leave the swarm and end the engine."""


# --- events: what the outside reports


@dataclass(frozen=True)
class Tick:
    """Time went on; nothing else."""


@dataclass(frozen=True)
class ConditionsSeen:
    """A sensor looked, at the moment `at` (wall clock seconds); readings that are not among `seen` stand."""

    seen: Seen
    at: float | None = None


@dataclass(frozen=True)
class AboutToSleep:
    """The system said that the computer will sleep in a moment. It may think better of it: Slept follows either way."""


@dataclass(frozen=True)
class Slept:
    """The computer was asleep, or skep stood still as if it were, for about `seconds`; 0 when only the system said so.

    Whatever had a time limit of less has passed it, connections to other computers most of all.
    """

    seconds: float


@dataclass(frozen=True)
class PowerCapSeen:
    """What came of the power cap: the limit that holds, or why there is none; `cap` None when it was taken off."""

    cap: PowerCap | None


@dataclass(frozen=True)
class IndexArrived:
    """The project's shard index was fetched and verified.

    The engine fills in `project`, so that the late answer to a join given up is told from the present one.
    """

    index: ShardIndex
    project: Project | None = None


@dataclass(frozen=True)
class IndexFailed:
    """As IndexArrived; `project` is filled in by the engine."""

    problem: Problem
    project: Project | None = None


@dataclass(frozen=True)
class WorkerStage:
    stage: Stage
    fraction: float
    detail: str = ""


@dataclass(frozen=True)
class WorkerJoined:
    """The worker is in the swarm. `device` is what torch confirmed, `precision` what it computes in.

    In `client_mode` it makes connections and accepts none, as behind a router.
    """

    peer_id: str
    device: str
    precision: str
    epoch: int
    step_batch: int
    micro_batch: int
    addresses: tuple[str, ...] = ()
    client_mode: bool = False
    heavy: bool = False


@dataclass(frozen=True)
class WorkerProgress:
    """About once a second while joined.

    `contribution` names the one growing now ("" when there is none) and `samples` what it holds so far;
    `position` counts samples this peer has drawn from the data, so that a restart goes on there. A project is `heavy`
    while a single sample takes longer than a micro-batch may while somebody uses this computer.
    """

    progress: SwarmProgress
    contribution: str = ""
    samples: int = 0
    position: int = 0
    heavy: bool = False


@dataclass(frozen=True)
class WorkerEvaluated:
    evaluation: Evaluation


@dataclass(frozen=True)
class WorkerPaused:
    """The worker stopped computing (`share` 0), or took up again; `reaction_seconds` after it was told.

    `behind` names what had to end first: "round" (with the optimizer's step), "state" for the swarm's state on its way,
    "joining", or "" for a micro-batch at most. What has a name ends at low priority, and is not what is called a reaction.
    """

    share: float
    reaction_seconds: float
    behind: str = ""


@dataclass(frozen=True)
class WorkerMemory:
    """The worker holds no more of the GPU's memory than `memory` says, `reaction_seconds` after it was told.

    `behind` as in WorkerPaused.
    """

    memory: GpuMemory
    reaction_seconds: float
    behind: str = ""


@dataclass(frozen=True)
class ContributionPending:
    """The gradients of `samples` go into the round that ends `epoch`."""

    id: str
    epoch: int
    samples: int


@dataclass(frozen=True)
class ContributionConfirmed:
    """Another peer's data was averaged with ours, nothing failed, the optimizer used the result."""

    id: str
    epoch: int
    samples: int
    peers: int


@dataclass(frozen=True)
class ContributionLost:
    id: str
    epoch: int
    samples: int
    reason: str
    peers: int = 0


@dataclass(frozen=True)
class ShardWanted:
    """The worker asks for a shard by hash."""

    sha256: str


@dataclass(frozen=True)
class ShardArrived:
    """A verified shard lies at `path`; also the engine's answer to the worker."""

    sha256: str
    path: str


@dataclass(frozen=True)
class ShardProgress:
    """A download went on: bytes so far of the total."""

    sha256: str
    bytes: int
    total: int


@dataclass(frozen=True)
class ShardFailed:
    """The shard cannot be had; also the engine's answer to the worker."""

    sha256: str
    problem: Problem


@dataclass(frozen=True)
class WorkerFailed:
    """The worker gives up with words for the user. `retry` says whether starting again may help."""

    problem: Problem
    retry: bool


@dataclass(frozen=True)
class WorkerExited:
    """The worker process is gone, with everything it had started."""

    code: int


@dataclass(frozen=True)
class ProblemArose:
    """Something outside the worker failed, such as writing the ledger; whatever was going on goes on."""

    problem: Problem


Command = Join | Leave | Pause | Resume | ChangeSettings | Quit
Event = (
    Tick
    | ConditionsSeen
    | AboutToSleep
    | Slept
    | PowerCapSeen
    | IndexArrived
    | IndexFailed
    | WorkerStage
    | WorkerJoined
    | WorkerProgress
    | WorkerEvaluated
    | WorkerPaused
    | WorkerMemory
    | ContributionPending
    | ContributionConfirmed
    | ContributionLost
    | ShardWanted
    | ShardArrived
    | ShardProgress
    | ShardFailed
    | WorkerFailed
    | WorkerExited
    | ProblemArose
)
Message = Command | Event

# --- what the engine tells the worker


@dataclass(frozen=True)
class StartTraining:
    """First line to the worker: everything it needs, all of it checked already.

    `share` 0..1; `threads` 0 means chosen by the worker; `device` "" means the best usable one;
    `listen` are multiaddresses to listen on; `run_folder` is private and short (unix sockets live there), made and
    filled in by whoever starts the process. `invitation` is the text of this peer's invitation, "" for an open project;
    `client_mode` is automatic, on or off, as in the setting. `present` and `memory` are as in SetShare; `leave_gpu` and
    `leave_ram` are the bytes that other programs always find free.
    """

    manifest: str
    index: ShardIndex
    identity_path: str
    run_folder: str
    seeds: tuple[str, ...]
    listen: tuple[str, ...]
    share: float
    device: str = ""
    threads: int = 0
    position: int = 0
    nice: int = 19
    invitation: str = ""
    client_mode: str = "automatic"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    leave_gpu: int = 0
    leave_ram: int = 0


@dataclass(frozen=True)
class SetShare:
    """Compute share 0..1 from now on; 0 pauses.

    While somebody is `present` micro-batches are short; `memory` is what may be held of the GPU's.
    """

    share: float
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP


@dataclass(frozen=True)
class StopTraining:
    """Leave the swarm at once and exit within 2 s."""


@dataclass(frozen=True)
class FinishTraining:
    """Compute no more, let the next round take what was accumulated, then leave the swarm and exit.

    A worker for which no round will come, or that is not in the swarm yet, leaves at once.
    """


ToWorker = StartTraining | SetShare | ShardArrived | ShardFailed | FinishTraining | StopTraining

# --- effects: what the engine's shell must do


@dataclass(frozen=True)
class FetchIndex:
    project: Project


@dataclass(frozen=True)
class StartWorker:
    """Start the worker with what the session knows; `launch.complete` adds what only the shell knows.

    `port` is TCP, 0 means any free one; the rest is as in StartTraining.
    """

    project: Project
    index: ShardIndex
    seeds: tuple[str, ...]
    share: float
    device: str = ""
    threads: int = 0
    port: int = 0
    client_mode: str = "automatic"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    leave_gpu: int = 0
    leave_ram: int = 0


@dataclass(frozen=True)
class TellWorker:
    message: ToWorker


@dataclass(frozen=True)
class StopWorker:
    """Ask the worker to stop and make sure that it does; WorkerExited follows."""


@dataclass(frozen=True)
class SetAllowance:
    allowance: Allowance


@dataclass(frozen=True)
class FetchShard:
    """Fetch a shard, or a file that the recipe needs beside them."""

    shard: ShardRef | FileRef


@dataclass(frozen=True)
class Record:
    """Write a contribution to the ledger (insert, or replace the one with this id)."""

    project_id: str
    contribution: Contribution


@dataclass(frozen=True)
class LosePending:
    """Everything of this project still pending in the ledger is lost, for this reason.

    The shell posts a ContributionLost for each, so that listeners see them too.
    """

    project_id: str
    reason: str


@dataclass(frozen=True)
class SavePosition:
    project_id: str
    position: int


@dataclass(frozen=True)
class SaveEvaluation:
    project_id: str
    evaluation: Evaluation


@dataclass(frozen=True)
class SaveSettings:
    values: dict[str, bool | int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class SavePause:
    """Remember a manual pause across restarts; `paused` False forgets it."""

    paused: bool
    until: float | None = None


@dataclass(frozen=True)
class RecordChange:
    """Write a change of the allowance to the timeline."""

    change: Change


@dataclass(frozen=True)
class RecordReaction:
    reaction: Reaction


@dataclass(frozen=True)
class RecordUsage:
    """Add to what a project has cost this computer."""

    quarter: Quarter


@dataclass(frozen=True)
class Notify:
    """Tell the user once about a problem."""

    problem: Problem


@dataclass(frozen=True)
class EndEngine:
    """The engine thread is done."""


Effect = (
    FetchIndex
    | StartWorker
    | TellWorker
    | StopWorker
    | SetAllowance
    | FetchShard
    | Record
    | LosePending
    | SavePosition
    | SaveEvaluation
    | SaveSettings
    | SavePause
    | RecordChange
    | RecordReaction
    | RecordUsage
    | Notify
    | EndEngine
)
