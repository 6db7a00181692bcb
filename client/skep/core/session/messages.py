"""The messages of the engine: commands of the user, events, and messages from and to the worker. Data only.

Messages between engine and worker are subclasses of WorkerMessage; `wire` encodes them as lines.
"""

from __future__ import annotations

import msgspec

from skep.core.device import ComputingDevice, PowerCap
from skep.core.policy.allowance import GpuMemory
from skep.core.policy.conditions import Seen
from skep.core.policy.growth import Use
from skep.core.project.data import Project, ShardIndex
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Evaluation
from skep.core.sandbox import Level
from skep.core.session.losses import LEFT
from skep.core.session.phases import Stage, SwarmProgress, Wait
from skep.core.settings.setting import Value
from skep.core.text import NOTHING, Problem, Text


class WorkerMessage(msgspec.Struct, frozen=True, tag=True):
    """A message between engine and worker. As JSON it is an object with the name of its class as "type"."""


# --- commands of the user


class Join(msgspec.Struct, frozen=True):
    """Join `project`; `seeds` are addresses to try beside the manifest's. If `resumed`, what fails is tried again."""

    project: VerifiedProject
    seeds: tuple[str, ...] = ()
    resumed: bool = False


class Leave(msgspec.Struct, frozen=True):
    """Leave the swarm after the round at the end of this epoch, or immediately with `now`; the engine keeps running."""

    now: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Stop computing until `until` (wall clock seconds), or until Resume when None."""

    until: float | None = None


class Resume(msgspec.Struct, frozen=True):
    """End a pause."""


class ChangeSettings(msgspec.Struct, frozen=True):
    """Set settings by key; the values are already parsed and checked."""

    values: dict[str, Value]


class Quit(msgspec.Struct, frozen=True):
    """Leave the swarm and end the engine."""


# --- events


class Tick(msgspec.Struct, frozen=True):
    """Sent regularly, so that time-dependent state is updated."""


class ConditionsSeen(msgspec.Struct, frozen=True):
    """New readings of a sensor, taken at `at` (wall clock seconds); readings that are not in `seen` are unchanged."""

    seen: Seen
    at: float | None = None


class AboutToSleep(msgspec.Struct, frozen=True):
    """The system announced a suspend. The suspend may still be cancelled: Slept follows in both cases."""


class Slept(msgspec.Struct, frozen=True):
    """The computer was suspended, or skep did not run, for about `seconds`; 0 if only the system reported it.

    Shorter timeouts have expired, in particular those of connections to other computers.
    """

    seconds: float


class PowerCapSeen(msgspec.Struct, frozen=True):
    """The result of setting power caps: for each card the limit in force, or why there is none; empty when removed."""

    caps: dict[str, PowerCap]


class IndexArrived(msgspec.Struct, frozen=True):
    """The project's shard index was fetched and verified.

    The engine sets `project`, so that a late answer to an abandoned join can be recognized.
    """

    index: ShardIndex
    project: Project | None = None


class IndexFailed(msgspec.Struct, frozen=True):
    """The project's shard index cannot be fetched. `project` is as in IndexArrived, `chance` as in WorkerExited."""

    problem: Problem
    project: Project | None = None
    chance: float = 1.0


class WorkerStage(WorkerMessage, frozen=True):
    stage: Stage
    fraction: float
    detail: Text = NOTHING


class WorkerJoined(WorkerMessage, frozen=True):
    """The worker is in the swarm. `device` is the one that torch confirmed, `precision` the one used in computing.

    `devices` are all that compute, of which `device` is the first; they are `in_step` where one model is spread over them.
    In `client_mode` it makes connections and accepts none, as is usual behind a router; if `relayed`, it accepts those that
    come through a seed; if `verified`, another peer has dialled it.
    """

    peer_id: str
    device: str
    precision: str
    epoch: int
    step_batch: int
    micro_batch: int
    addresses: tuple[str, ...] = ()
    client_mode: bool = False
    relayed: bool = False
    heavy: bool = False
    devices: tuple[ComputingDevice, ...] = ()
    in_step: bool = False
    verified: bool = False


class WorkerProgress(WorkerMessage, frozen=True):
    """The worker's progress, about once a second while joined, or while it hands over the state of a run that is over.

    `contribution` is the id of the current contribution ("" if there is none) and `samples` its samples so far;
    `position` is the number of samples that this peer has drawn or left to others, where a restart continues. A project
    is `heavy` while a single sample takes longer than the limit for a micro-batch while this computer is in use.
    `devices` are those that compute now; empty if they are still those of WorkerJoined.
    """

    progress: SwarmProgress
    contribution: str = ""
    samples: int = 0
    position: int = 0
    heavy: bool = False
    waits_for: Wait = Wait.NOTHING
    devices: tuple[ComputingDevice, ...] = ()


class WorkerEvaluated(WorkerMessage, frozen=True):
    evaluation: Evaluation


class WorkerPaused(WorkerMessage, frozen=True):
    """The worker stopped computing (`share` 0) or resumed, `reaction_seconds` after it received the new share.

    `behind` is what had to end first: "round" (with the optimizer's step), "state" for a transfer of the swarm's state,
    "joining", or "" for at most a micro-batch. Unless it is "", the work ran at low priority and is not a reaction.
    """

    share: float
    reaction_seconds: float
    behind: str = ""


class WorkerMemory(WorkerMessage, frozen=True):
    """The worker reduced its GPU memory to what `memory` allows, `reaction_seconds` after it received the request.

    `behind` is as in WorkerPaused.
    """

    memory: GpuMemory
    reaction_seconds: float
    behind: str = ""


class ContributionPending(WorkerMessage, frozen=True):
    """The gradients of `samples` are part of the round that ends `epoch`."""

    id: str
    epoch: int
    samples: int


class ContributionConfirmed(WorkerMessage, frozen=True):
    """Another peer's data was averaged with that of this computer, and the optimizer used the result without errors."""

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
    sha256: str


class ShardArrived(WorkerMessage, frozen=True):
    """A verified shard is available at `path`; also the engine's answer to the worker."""

    sha256: str
    path: str


class ShardProgress(msgspec.Struct, frozen=True):
    """The progress of a download: bytes so far of the total."""

    sha256: str
    bytes: int
    total: int


class ShardFailed(WorkerMessage, frozen=True):
    """The shard cannot be fetched; also the engine's answer to the worker."""

    sha256: str
    problem: Problem


class RevocationsArrived(WorkerMessage, frozen=True):
    """The project's list of revoked invitations was fetched and verified; also the engine's message to the worker."""

    text: str


class WorkerNoticed(WorkerMessage, frozen=True):
    """A problem for the user that does not end the worker.

    With `over`, the problem of an earlier notice, that one is over, and `problem` says so.
    """

    problem: Problem
    over: Problem | None = None


class WorkerFailed(WorkerMessage, frozen=True):
    """The worker ends with an error for the user. `retry` says whether a restart may help."""

    problem: Problem
    retry: bool


class WorkerFinished(WorkerMessage, frozen=True):
    """The run's last epoch has ended. The worker exits when no peer loads the state from it any more."""


class WorkerSaving(WorkerMessage, frozen=True):
    """The worker has left the swarm and writes its state to the disk, for `seconds` at most; then it exits."""

    seconds: float


class WorkerMeasured(msgspec.Struct, frozen=True):
    """What the worker and all processes that it started use; measured by the engine's side about once a minute."""

    use: Use


class WorkerExited(msgspec.Struct, frozen=True):
    """The worker process and all processes that it started have ended.

    `chance` is drawn at random from 0..1; it varies the wait before the next start, so that many computers that lost the
    same swarm do not return at the same moment.
    """

    code: int
    chance: float = 1.0


class ProblemArose(msgspec.Struct, frozen=True):
    """An operation outside the worker failed, such as writing the ledger; the session continues. `over` as above."""

    problem: Problem
    over: Problem | None = None


Command = Join | Leave | Pause | Resume | ChangeSettings | Quit
ContributionReport = ContributionPending | ContributionConfirmed | ContributionLost
WorkerEnd = WorkerFailed | WorkerFinished | WorkerSaving
WorkerReport = WorkerStage | WorkerJoined | WorkerProgress | WorkerEvaluated | WorkerMemory | WorkerEnd
ShardReport = ShardWanted | ShardArrived | ShardProgress | ShardFailed
FromWorker = WorkerReport | WorkerPaused | WorkerNoticed | ContributionReport | ShardWanted
FromComputer = ConditionsSeen | PowerCapSeen | AboutToSleep | Slept
OfWorker = WorkerMeasured | WorkerExited
Fetched = IndexArrived | IndexFailed | RevocationsArrived
Event = Tick | FromComputer | Fetched | FromWorker | ShardReport | OfWorker | ProblemArose
Message = Command | Event

# --- messages from the engine to the worker


class WorkerOptions(WorkerMessage, frozen=True):
    """The first line to the worker: its options, already checked.

    The session sets the first part. The engine adds `identity_path`, `shards_folder`, `snapshots_folder` and
    `known_peers_folder` ("" to keep none), `invitation` and `revocations` (their texts, "" for none), `listen_host` (an
    IPv4 address) and `position` (samples passed before). The adapter that starts the process adds its `run_folder`,
    which is private and has a short path, because it contains unix sockets.

    The worker reads shards and the recipe's files in `shards_folder` only. `sandbox` is how it confines itself.

    `manifest` is its text; `seeds` are additional multiaddresses to try. `share` is 0..1; `device` is as in the setting,
    "" for the best usable one; `threads` 0 lets the worker choose; `nccl` are NCCL's least channels, threads for sockets,
    and sockets of each, 0 for its own choice; `port` is TCP, 0 means any free one; with `map_port` the router is asked to
    forward it; `client_mode` is automatic, on or off, as in the setting. `present`, `memory` and `ceilings` are as in
    SetShare; `leave_gpu` and `leave_ram` are the bytes to leave free for other programs, `leave_gpu_of` those of devices
    with a limit of their own; `snapshot_bytes_per_day` is what snapshots of the state may write. `nice` is the priority of
    the threads that train, 1..19 as in nice(2). `upload` and `download` are as in SetTraffic.
    """

    manifest: str
    index: ShardIndex
    seeds: tuple[str, ...] = ()
    share: float = 1.0
    device: str = ""
    threads: int = 0
    nccl: tuple[int, int, int] = (0, 0, 0)
    port: int = 0
    map_port: bool = False
    client_mode: str = "automatic"
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    ceilings: dict[str, float] = {}
    leave_gpu: int = 0
    leave_gpu_of: dict[str, int] = {}
    leave_ram: int = 0
    nice: int = 19
    upload: float = 0.0
    download: float = 0.0
    snapshot_bytes_per_day: int = 0

    identity_path: str = ""
    snapshots_folder: str = ""
    known_peers_folder: str = ""
    invitation: str = ""
    revocations: str = ""
    listen_host: str = "127.0.0.1"
    position: int = 0
    shards_folder: str = ""

    run_folder: str = ""
    sandbox: Level = Level.BEST


class SetShare(WorkerMessage, frozen=True):
    """Set the compute share 0..1; 0 pauses.

    While a user is `present`, micro-batches are short; `memory` is how much GPU memory the worker may hold. `ceilings`
    has the largest share of each of several devices that has one below 1.
    """

    share: float
    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    ceilings: dict[str, float] = {}


class SetTraffic(WorkerMessage, frozen=True):
    """Send to other peers, and take from them, at most so many bytes per second; 0 for no limit."""

    upload: float
    download: float


class StopTraining(WorkerMessage, frozen=True):
    """Stop computing and leave the swarm within 2 s, then save the state (see WorkerSaving) and exit.

    What was not averaged is lost for `reason`.
    """

    reason: Text = LEFT


class FinishTraining(WorkerMessage, frozen=True):
    """Stop computing, contribute the accumulated samples in the next round, then leave the swarm and exit.

    A worker without a next round, or one that is not in the swarm yet, leaves immediately. With `at_edge` it goes on
    computing until this epoch has ended, so that nothing is left to contribute.
    """

    at_edge: bool = False


Answer = ShardArrived | ShardFailed | RevocationsArrived
ToWorker = WorkerOptions | SetShare | SetTraffic | Answer | FinishTraining | StopTraining
