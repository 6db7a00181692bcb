"""The engine's whole state as one frozen value, which front ends show and `session.step` moves on. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from skep.core.device import PowerCap
from skep.core.policy.allowance import Allowance, Change, PauseState, Reaction
from skep.core.policy.conditions import Conditions
from skep.core.policy.decision import Grades, Holding
from skep.core.project.data import Project, ShardIndex
from skep.core.record.contributions import Account, Evaluation, Totals
from skep.core.record.usage import Meter
from skep.core.session.phases import Phase, StageProgress, SwarmProgress
from skep.core.text import Problem, Text


@dataclass(frozen=True)
class WorkerRun:
    """The one worker process there is, from its start to its exit."""

    joined_at: float | None = None
    """Wall clock seconds when this worker was in the swarm; None before."""
    joined_epoch: int = 0
    failed: bool = False
    """It gave up with words of its own, and is about to exit."""
    wanted: frozenset[str] = frozenset()
    """Hashes of the shards it waits for."""
    departing: bool = False
    """It was told to leave the swarm and exit; another one starts when it may."""
    departing_until: float | None = None
    """Wall clock seconds until which it may wait for its last round; None when it was stopped at once."""


@dataclass(frozen=True)
class Falling:
    """The share went down, and the worker's word about it is awaited; `since` is wall clock seconds."""

    rule: str
    share: float
    since: float


@dataclass(frozen=True)
class Snapshot:
    """Everything a front end shows; published whole after every message."""

    phase: Phase = Phase.IDLE
    settings: dict[str, bool | int | float | str] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=lambda: Allowance(1.0, Text("rule.training_full_share")))
    pause: PauseState | None = None
    conditions: Conditions = field(default_factory=Conditions)
    power_cap: PowerCap | None = None
    """The power limit skep has set on the card, or why it could not; None while it wants none."""
    holding: tuple[Holding, ...] = field(default=(), compare=False)
    """Every rule that holds now, the winner first."""
    grades: Grades = field(default_factory=Grades, compare=False, repr=False)
    """How the share moves over time; not for show."""
    reactions: tuple[Reaction, ...] = ()
    """How long giving back took the last times, the latest last."""
    falling: Falling | None = None
    change: Change | None = None
    """The entry of the timeline that is in force."""
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)
    """What this stay has cost and is not written yet; not for show."""
    project: Project | None = None
    """The project being joined, trained or left; None when idle."""
    last_project: Project | None = None
    """The project left last; what comes late about its contributions is still recorded."""
    seeds: tuple[str, ...] = ()
    index: ShardIndex | None = None
    stage: StageProgress | None = None
    worker: WorkerRun | None = None
    """None while no worker process runs."""
    joined: bool = False
    """Whether any worker of this stay was in the swarm: then failures are retried."""
    peer_id: str = ""
    device: str = ""
    client_mode: bool = False
    """Whether the worker makes connections and accepts none, as behind a router."""
    heavy: bool = False
    """Whether a single sample takes longer than a micro-batch may while somebody uses this computer."""
    progress: SwarmProgress | None = None
    position: int = 0
    """Samples drawn from the data, as last reported in this stay."""
    evaluations: tuple[Evaluation, ...] = ()
    account: Account = field(default_factory=Account)
    totals: Totals = field(default_factory=Totals)
    """Of this stay, by contribution; kept when idle until the next join."""
    problem: Problem | None = None
    failures: int = 0
    """Worker failures in a row; sets the wait before the next start."""
    restart_at: float | None = None
    """Wall clock seconds of the next start, while recovering."""
    leaving_until: float | None = None
    """Wall clock seconds until which leaving waits for a round; None while it does not."""
    quitting: bool = False
