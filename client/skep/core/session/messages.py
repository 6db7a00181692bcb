"""Everything that can happen to the engine: commands come from a person, events from the outside. Data only.

Those that travel between engine and worker are each a WorkerMessage; `wire` makes lines of them.
"""

from __future__ import annotations

import msgspec

from skep.core.device import PowerCap
from skep.core.policy.allowance import GpuMemory
from skep.core.policy.conditions import Seen
from skep.core.project.data import Project, ShardIndex
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Evaluation
from skep.core.session.phases import Stage, SwarmProgress
from skep.core.text import NOTHING, Problem, Text


class WorkerMessage(msgspec.Struct, frozen=True, tag=True):
    """What engine and worker tell each other. As JSON it is an object with its class's name as "type"."""


# --- commands: what a person asks for


class Join(msgspec.Struct, frozen=True):
    """Join `project`; `seeds` are extra multiaddresses to try beside the manifest's own."""

    project: VerifiedProject
    seeds: tuple[str, ...] = ()


class Leave(msgspec.Struct, frozen=True):
    """Leave the swarm, keep the front end: after the round at the end of this epoch, or `now`."""

    now: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Stop computing until `until` (wall clock seconds), or until Resume when None."""

    until: float | None = None


class Resume(msgspec.Struct, frozen=True):
    """End a pause."""


class ChangeSettings(msgspec.Struct, frozen=True):
    """Set settings by key; the values were parsed and checked already."""

    values: dict[str, bool | int | float | str]


class Quit(msgspec.Struct, frozen=True):
    """Leave the swarm and end the engine."""


# --- events: what the outside reports


class Tick(msgspec.Struct, frozen=True):
    """Time went on; nothing else."""


class ConditionsSeen(msgspec.Struct, frozen=True):
    """A sensor looked, at the moment `at` (wall clock seconds); readings that are not among `seen` stand."""

    seen: Seen
    at: float | None = None


class AboutToSleep(msgspec.Struct, frozen=True):
    """The system said that the computer will sleep in a moment. It may not happen after all: Slept follows either way."""


class Slept(msgspec.Struct, frozen=True):
    """The computer was asleep, or skep stood still as if it were, for about `seconds`; 0 when only the system said so.

    Whatever had a time limit of less has passed it, connections to other computers most of all.
    """

    seconds: float


class PowerCapSeen(msgspec.Struct, frozen=True):
    """What came of the power cap: the limit that holds, or why there is none; `cap` None when it was taken off."""

    cap: PowerCap | None


class IndexArrived(msgspec.Struct, frozen=True):
    """The project's shard index was fetched and verified.

    The engine fills in `project`, so that the late answer to a join given up is told from the present one.
    """

    index: ShardIndex
    project: Project | None = None


class IndexFailed(msgspec.Struct, frozen=True):
    """As IndexArrived; `project` is filled in by the engine."""

    problem: Problem
    project: Project | None = None


class WorkerStage(WorkerMessage, frozen=True):
    stage: Stage
    fraction: float
    detail: Text = NOTHING


class WorkerJoined(WorkerMessage, frozen=True):
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


class WorkerProgress(WorkerMessage, frozen=True):
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


class WorkerEvaluated(WorkerMessage, frozen=True):
    evaluation: Evaluation


class WorkerPaused(WorkerMessage, frozen=True):
    """The worker stopped computing (`share` 0), or took up again; `reaction_seconds` after it was told.

    `behind` names what had to end first: "round" (with the optimizer's step), "state" for the swarm's state on its way,
    "joining", or "" for a micro-batch at most. What has a name ends at low priority, and is not what is called a reaction.
    """

    share: float
    reaction_seconds: float
    behind: str = ""


class WorkerMemory(WorkerMessage, frozen=True):
    """The worker holds no more of the GPU's memory than `memory` says, `reaction_seconds` after it was told.

    `behind` as in WorkerPaused.
    """

    memory: GpuMemory
    reaction_seconds: float
    behind: str = ""


class ContributionPending(WorkerMessage, frozen=True):
    """The gradients of `samples` go into the round that ends `epoch`."""

    id: str
    epoch: int
    samples: int


class ContributionConfirmed(WorkerMessage, frozen=True):
    """Another peer's data was averaged with ours, nothing failed, the optimizer used the result."""

    id: str
    epoch: int
    samples: int
    peers: int


class ContributionLost(WorkerMessage, frozen=True):
    id: str
    epoch: int
    samples: int
    reason: Text
    peers: int = 0


class ShardWanted(WorkerMessage, frozen=True):
    """The worker asks for a shard by hash."""

    sha256: str


class ShardArrived(WorkerMessage, frozen=True):
    """A verified shard lies at `path`; also the engine's answer to the worker."""

    sha256: str
    path: str


class ShardProgress(msgspec.Struct, frozen=True):
    """A download went on: bytes so far of the total."""

    sha256: str
    bytes: int
    total: int


class ShardFailed(WorkerMessage, frozen=True):
    """The shard cannot be had; also the engine's answer to the worker."""

    sha256: str
    problem: Problem


class WorkerFailed(WorkerMessage, frozen=True):
    """The worker gives up with words for the user. `retry` says whether starting again may help."""

    problem: Problem
    retry: bool


class WorkerExited(msgspec.Struct, frozen=True):
    """The worker process is gone, with everything it had started."""

    code: int


class ProblemArose(msgspec.Struct, frozen=True):
    """Something outside the worker failed, such as writing the ledger; whatever was going on goes on."""

    problem: Problem


Command = Join | Leave | Pause | Resume | ChangeSettings | Quit
ContributionReport = ContributionPending | ContributionConfirmed | ContributionLost
WorkerReport = WorkerStage | WorkerJoined | WorkerProgress | WorkerEvaluated | WorkerMemory | WorkerFailed
ShardReport = ShardWanted | ShardArrived | ShardProgress | ShardFailed
FromWorker = WorkerReport | WorkerPaused | ContributionReport | ShardWanted
FromComputer = ConditionsSeen | PowerCapSeen | AboutToSleep | Slept
Event = Tick | FromComputer | IndexArrived | IndexFailed | FromWorker | ShardReport | WorkerExited | ProblemArose
Message = Command | Event

# --- what the engine tells the worker


class WorkerOptions(WorkerMessage, frozen=True):
    """First line to the worker: everything it is given at its start, all of it checked already.

    The session sets the first part. The engine adds what it alone knows: which `identity_path`, `invitation` (its text, ""
    for an open project), `listen_host` (an IPv4 address) and `position` (samples drawn before). Whoever starts the process
    adds its `run_folder`, which is private and short, because unix sockets lie there.

    `manifest` is its text; `seeds` are extra multiaddresses to try. `share` 0..1; `device` "" means the best usable one,
    `threads` 0 chosen by the worker; `port` is TCP, 0 means any free one; `client_mode` is automatic, on or off, as in the
    setting. `present` and `memory` are as in SetShare; `leave_gpu` and `leave_ram` are the bytes that other programs always
    find free.
    """

    manifest: str
    index: ShardIndex
    seeds: tuple[str, ...] = ()
    share: float = 1.0
    device: str = ""
    threads: int = 0
    port: int = 0
    client_mode: str = "automatic"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    leave_gpu: int = 0
    leave_ram: int = 0
    nice: int = 19

    identity_path: str = ""
    invitation: str = ""
    listen_host: str = "127.0.0.1"
    position: int = 0

    run_folder: str = ""


class SetShare(WorkerMessage, frozen=True):
    """Compute share 0..1 from now on; 0 pauses.

    While somebody is `present` micro-batches are short; `memory` is what may be held of the GPU's.
    """

    share: float
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP


class StopTraining(WorkerMessage, frozen=True):
    """Leave the swarm at once and exit within 2 s."""


class FinishTraining(WorkerMessage, frozen=True):
    """Compute no more, let the next round take what was accumulated, then leave the swarm and exit.

    A worker for which no round will come, or that is not in the swarm yet, leaves at once.
    """


ToWorker = WorkerOptions | SetShare | ShardArrived | ShardFailed | FinishTraining | StopTraining
