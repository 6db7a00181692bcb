"""Everything that the engine's shell is asked to do, by the adapters. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from skep.core.policy.allowance import Allowance, Change, Reaction
from skep.core.project.data import FileRef, ShardRef
from skep.core.project.types import VerifiedProject
from skep.core.record.contributions import Contribution, Evaluation
from skep.core.record.usage import Quarter
from skep.core.session.messages import ToWorker, WorkerOptions
from skep.core.text import Problem, Text


@dataclass(frozen=True)
class FetchIndex:
    project: VerifiedProject


@dataclass(frozen=True)
class StartWorker:
    """Start the worker of `project` with what the session knows of its options."""

    project: VerifiedProject
    options: WorkerOptions


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
    reason: Text


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
