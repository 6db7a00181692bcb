"""Effects: the actions that the state machine requests and the engine carries out. Data only."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from skep.core.policy.allowance import Allowance, Change, Reaction
from skep.core.policy.growth import Use
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef, ShardRef
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Contribution, Evaluation
from skep.core.record.usage import Quarter
from skep.core.session.losses import LEFT
from skep.core.session.messages import ToWorker, WorkerOptions
from skep.core.settings.setting import Value
from skep.core.text import Problem, Text


class FetchIndex(msgspec.Struct, frozen=True):
    project: VerifiedProject


class StartWorker(msgspec.Struct, frozen=True):
    """Start the worker of `project` with those of its options that the session knows."""

    project: VerifiedProject
    options: WorkerOptions


class TellWorker(msgspec.Struct, frozen=True):
    message: ToWorker


class StopWorker(msgspec.Struct, frozen=True):
    """Ask the worker to stop and make sure that it does; WorkerExited follows. What was not averaged is lost for `reason`."""

    reason: Text = LEFT


class EndStuckWorker(msgspec.Struct, frozen=True):
    """Have the worker write its stacks to the log, and end it; WorkerExited follows."""


class RenewWorker(msgspec.Struct, frozen=True):
    """Ask the worker to end at the end of an epoch, because its processes have grown from `first` to `now`."""

    first: Use
    now: Use


class SetAllowance(msgspec.Struct, frozen=True):
    """`ceilings` are as in SetShare."""

    allowance: Allowance
    ceilings: Mapping[str, float] = {}


class FetchShard(msgspec.Struct, frozen=True):
    """Fetch a shard, or another file that the recipe needs, from the addresses that its project may reach."""

    shard: ShardRef | FileRef
    reach: Reach


class StopFetching(msgspec.Struct, frozen=True):
    """End all downloads: none is needed any more. What has arrived is kept."""


class Record(msgspec.Struct, frozen=True):
    """Write a contribution to the ledger (insert, or replace the one with this id)."""

    project_id: str
    contribution: Contribution


class LosePending(msgspec.Struct, frozen=True):
    """Mark all pending contributions of this project in the ledger as lost, with this reason.

    The engine posts a ContributionLost for each, so that observers receive them too.
    """

    project_id: str
    reason: Text


class SavePosition(msgspec.Struct, frozen=True):
    project_id: str
    position: int


class SaveEvaluation(msgspec.Struct, frozen=True):
    project_id: str
    evaluation: Evaluation


class SaveSettings(msgspec.Struct, frozen=True):
    values: dict[str, Value]


class SavePause(msgspec.Struct, frozen=True):
    """Save a manual pause for the next start; `paused` False deletes it."""

    paused: bool
    until: float | None = None


class RecordChange(msgspec.Struct, frozen=True):
    """Write a change of the allowance to the timeline."""

    change: Change


class RecordReaction(msgspec.Struct, frozen=True):
    reaction: Reaction


class RecordUsage(msgspec.Struct, frozen=True):
    """Add to the recorded usage of a project."""

    quarter: Quarter


class Notify(msgspec.Struct, frozen=True):
    """Notify the user once about a problem, or the end of a run."""

    problem: Problem


class EndEngine(msgspec.Struct, frozen=True):
    """End the engine thread."""


WorkerEffect = StartWorker | TellWorker | StopWorker | EndStuckWorker | RenewWorker | SetAllowance
Recording = Record | LosePending | RecordChange | RecordReaction | RecordUsage
Saving = SavePosition | SaveEvaluation | SaveSettings | SavePause
Fetching = FetchIndex | FetchShard | StopFetching
Effect = Fetching | WorkerEffect | Recording | Saving | Notify | EndEngine
