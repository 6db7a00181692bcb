"""The engine's whole state as one frozen value, which front ends show and `session.step` updates. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skep.core.device import ComputingDevice, PowerCap, names_of
from skep.core.policy.allowance import Allowance, Change, PauseState, Reaction
from skep.core.policy.conditions import Conditions
from skep.core.policy.decision import Holding, PolicyState
from skep.core.policy.device_shares import Ceiling
from skep.core.policy.growth import Growth
from skep.core.project.data import Project, ShardIndex
from skep.core.record.contributions import Account, Evaluation, Totals
from skep.core.record.usage import Meter
from skep.core.session.losses import LEFT, Losses
from skep.core.session.phases import Phase, StageProgress, SwarmProgress, Wait
from skep.core.settings.setting import Value
from skep.core.text import NOTHING, Problem, Text


@dataclass(frozen=True)
class WorkerRun:
    """The worker process, from its start to its exit."""

    joined_at: float | None = None
    """Wall clock seconds when this worker joined the swarm; None before."""
    joined_epoch: int = 0
    failed: bool = False
    """It reported an error and is about to exit."""
    wanted: frozenset[str] = frozenset()
    """Hashes of the shards it waits for."""
    confirmed: bool = False
    """It has brought a confirmed contribution."""
    departing: bool = False
    """It is leaving the swarm and will exit; another worker starts when the network may be used again."""
    departing_until: float | None = None
    """Wall clock seconds until which it may wait for its last round; None when it was stopped at once."""
    stopped_for: Text = LEFT
    """Why what it had not averaged yet is lost, if it exits because it was asked to."""
    saving_until: float | None = None
    """Wall clock seconds until which it may write its state to the disk, as its last act; None before."""
    growth: Growth = field(default_factory=Growth, compare=False, repr=False)
    """What its processes have used while it trained; not shown."""


@dataclass(frozen=True)
class Advance:
    """What the running worker last did; maintained and judged by `deadlines`. Times are the policy's steady seconds.

    It last reported at `heard_at`, made progress at `at`, trained a sample, or rested as asked, at `trained_at`, and had
    sent a part of a state, or as much, at `sent_at`.
    `gaps` are the latest times between two micro-batches, oldest first, and `rounds` those before a new epoch, without
    progress; the others are figures of the last progress.
    """

    heard_at: float = 0.0
    at: float = 0.0
    trained_at: float = 0.0
    waits_for: Wait = Wait.NOTHING
    gaps: tuple[float, ...] = ()
    rounds: tuple[float, ...] = ()
    epoch: int = -1
    computed: float = 0.0
    napped: float = 0.0
    received: int = 0
    sent: int = 0
    sent_at: float = 0.0


@dataclass(frozen=True)
class Falling:
    """The share was reduced and the worker has not confirmed it yet; `since` is wall clock seconds."""

    rule: str
    share: float
    since: float


@dataclass(frozen=True)
class Snapshot:
    """The state that front ends show; published as a whole after every message."""

    phase: Phase = Phase.IDLE
    settings: dict[str, Value] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=lambda: Allowance(1.0, Text("rule.training_full_share")))
    pause: PauseState | None = None
    conditions: Conditions = field(default_factory=Conditions)
    power_caps: Mapping[str, PowerCap] = field(default_factory=dict)
    """The power limits that skep has set on cards, by device, or why it could not; empty while none is wanted."""
    holding: tuple[Holding, ...] = field(default=(), compare=False)
    """Every rule that holds now, the one with the lowest ceiling first."""
    policy_state: PolicyState = field(default_factory=PolicyState, compare=False, repr=False)
    """The policy's state over time; not shown."""
    reactions: tuple[Reaction, ...] = ()
    """The latest reaction times, oldest first."""
    falling: Falling | None = None
    change: Change | None = None
    """The entry of the timeline that is in force."""
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    """The usage of this stay that is not written yet; not shown."""
    project: Project | None = None
    """The project being joined, trained or left; None when idle."""
    last_project: Project | None = None
    """The project left last; late messages about its contributions are still recorded."""
    seeds: tuple[str, ...] = ()
    index: ShardIndex | None = None
    stage: StageProgress | None = None
    """Of joining, or that of a worker that has joined, has fallen behind and loads the swarm's state."""
    worker: WorkerRun | None = None
    """None while no worker process runs."""
    advance: Advance = field(default_factory=Advance, compare=False, repr=False)
    """The progress of the worker; not shown."""
    waiting: Text = NOTHING
    """Why nothing is trained although it may be, after a minute, or all is lost: shown instead of the allowance's reason."""
    losses: Losses = field(default_factory=Losses, compare=False, repr=False)
    """The contributions lost since the last confirmed one; not shown."""
    joined: bool = False
    """Whether any worker of this stay joined the swarm."""
    resumed: bool = False
    """Whether this stay goes on with an earlier one, or a worker of it has loaded a part of the state."""
    peer_id: str = ""
    device: str = ""
    devices: tuple[ComputingDevice, ...] = ()
    """All that compute, the `device` first."""
    in_step: bool = False
    """Whether one model is spread over the devices, so that all compute each sample together."""
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    """Of each device that may not compute at full share, for its temperature or its own limit."""
    client_mode: bool = False
    """Whether the worker makes connections and accepts none, as is usual behind a router."""
    relayed: bool = False
    """Whether connections to the worker come through a seed, because others cannot dial it."""
    verified: bool = False
    """Whether another peer has dialled the worker: one that is neither client nor relayed may still be out of reach."""
    heavy: bool = False
    """Whether a single sample takes longer than the limit for a micro-batch while this computer is in use."""
    progress: SwarmProgress | None = None
    """What the running worker reported last; None while none runs."""
    position: int = 0
    """Samples drawn from the data or left to other peers, as last reported in this stay."""
    evaluations: tuple[Evaluation, ...] = ()
    account: Account = field(default_factory=Account)
    totals: Totals = field(default_factory=Totals)
    """Totals of this stay, by contribution; kept when idle until the next join."""
    problem: Problem | None = None
    finished: Text = NOTHING
    """What became of a run that is over, and where its result is; kept when idle until the next join."""
    failures: int = 0
    """Consecutive workers that failed without a confirmed contribution; determines the wait before the next start."""
    restart_at: float | None = None
    """Wall clock seconds of the next start, while recovering, or paused after too many failures."""
    renewing: bool = False
    """A worker was asked to end because its processes had grown, and the next one has not joined yet."""
    renewed_at: float | None = None
    """When that was asked last, in the policy's steady seconds."""
    leaving_until: float | None = None
    """Wall clock seconds until which leaving waits for a round; None if it does not wait."""
    last_round_seconds: float = 0.0
    """Length of the wait for the round that a leaving, or a departing worker, began last."""
    left: bool = False
    """Whether a person has asked to leave: what goes wrong from then on does not bring the project back."""
    saving: bool = False
    """The worker has left the swarm and writes its state to the disk."""
    quitting: bool = False

    @property
    def device_names(self) -> str:
        """All that compute, each name once; "" before a worker has joined."""
        return names_of([each.name for each in self.devices]) or self.device

    @property
    def tries_again(self) -> bool:
        """Whether a failure is followed by another try: a first join that was just asked for ends with its error."""
        return self.joined or self.resumed

    @property
    def shares(self) -> Mapping[str, float]:
        """The largest share of each device that has one below 1."""
        return {device: each.share for device, each in self.ceilings.items()}

    @property
    def on_a_break(self) -> bool:
        """Whether the project is paused after too many failures, until the user resumes or `restart_at`."""
        return self.phase is Phase.PAUSED and self.restart_at is not None
