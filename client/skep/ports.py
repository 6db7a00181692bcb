"""What the engine needs from the outside world, as Protocols; adapters and the tests' fakes implement them.

It must hold no behaviour. Every port has one contract test that runs on the real adapter and on the fake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Protocol, runtime_checkable

from skep.core.device import Device
from skep.core.policy.allowance import Change, Reaction
from skep.core.policy.conditions import Condition, Seen
from skep.core.project.data import FileRef, ShardRef
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Contribution, Evaluation, Tally, Totals
from skep.core.record.usage import Earned, Proportion, Quarter, Spent
from skep.core.session import messages
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Text

Post = Callable[[messages.Message], None]
"""Hands a message to the engine's queue; may be called from any thread."""


class Clock(Protocol):
    def wall(self) -> float:
        """Seconds since the Unix epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow; for measuring."""

    def zone(self) -> tzinfo:
        """This computer's time zone as it is now, summer time included."""


class Worker(Protocol):
    """The child process, one at a time. What it reports is posted as messages, at last WorkerExited."""

    def start(self, options: messages.WorkerOptions) -> None:
        """Start the process and hand it its start message. Raises SkepError when it cannot be started."""

    def tell(self, message: messages.ToWorker) -> None:
        """Send one message; a worker that is gone is not an error (WorkerExited tells)."""

    def stop(self, within: float = 2.0) -> None:
        """Ask it to leave, kill what is left of its tree after `within` seconds. Returns at once."""

    def close(self, within: float = 2.0) -> None:
        """As stop, but returns when nothing of the worker is left."""


class Ledger(Protocol):
    """The record of contributions. Every call is durable when it returns. Raises StorageError."""

    def record(self, project_id: str, contribution: Contribution) -> None:
        """Insert, or replace the contribution with this id. A confirmed or lost one never changes again."""

    def pending(self, project_id: str) -> Sequence[Contribution]: ...

    def totals(self, project_id: str | None = None) -> Totals:
        """Of one project, or of all."""

    def contributions(self, project_id: str | None = None) -> Sequence[Contribution]:
        """Oldest first."""

    def save_position(self, project_id: str, position: int) -> None: ...

    def position(self, project_id: str) -> int:
        """Samples drawn so far; 0 for an unknown project."""

    def save_evaluation(self, project_id: str, evaluation: Evaluation) -> None: ...

    def evaluations(self, project_id: str) -> Sequence[Evaluation]: ...

    def projects(self) -> Sequence[str]:
        """Ids of the projects with at least one contribution or any usage, the earliest first."""

    def record_change(self, change: Change) -> None:
        """Add to the timeline; what is older than a year before it is forgotten, but for the entry in force then."""

    def changes(self, begin: float, end: float) -> Sequence[Change]:
        """The timeline from `begin` until before `end` (wall clock seconds), oldest first.

        The first is the one in force at `begin`, though older, where there is one.
        """

    def record_reaction(self, reaction: Reaction) -> None:
        """Keep it; only the last thousand are."""

    def reactions(self, most: int) -> Sequence[Reaction]:
        """The last ones recorded, `most` of them at most, oldest first."""

    def add_usage(self, quarter: Quarter) -> None:
        """Add to what the project cost in that quarter of an hour."""

    def usage(self, begin: float, end: float) -> Sequence[Quarter]:
        """What each project cost in the quarters that begin from `begin` until before `end`, oldest first."""

    def spent(self, project_id: str | None = None) -> Spent:
        """What one project, or all, cost so far."""

    def alive(self) -> float | None:
        """When usage was added last, in wall clock seconds; None before the first time."""

    def earned(self, begin: float, end: float) -> Sequence[Earned]:
        """What was confirmed or lost in the quarters of an hour from `begin` until before `end`, oldest first."""

    def lost_reasons(self, project_id: str | None = None) -> Mapping[Text, Tally]:
        """Why contributions were lost, the most frequent reason first."""

    def proportion(self, project_id: str | None = None) -> Proportion:
        """Confirmed samples beside those of the whole swarm, over the epochs of which both are known."""

    def close(self) -> None: ...


class Shards(Protocol):
    """Downloads and verifies a project's data; runs in threads of its own and posts what happened."""

    def fetch_index(self, project: VerifiedProject, post: Post) -> None:
        """Posts IndexArrived or IndexFailed."""

    def fetch(self, shard: ShardRef | FileRef, post: Post) -> None:
        """Posts ShardProgress now and then, at last ShardArrived or ShardFailed."""

    def close(self) -> None:
        """Stop downloads; partial files stay, for going on later."""


class SettingsStore(Protocol):
    def load(self) -> dict[str, bool | int | float | str]:
        """Known settings with their values, defaults filled in. Raises SettingsError."""

    def save(self, values: dict[str, bool | int | float | str]) -> None:
        """Write these settings; everything else in the file is kept."""


class Catalogue(Protocol):
    """The projects known in this home."""

    def add(self, source: str, *, consent: bool = False) -> VerifiedProject:
        """Verify the manifest at a path, URL or join link and keep it. `consent` lets a new revision use more than before.

        Raises ManifestError, BadInput, StorageError.
        """

    def find(self, name: str) -> VerifiedProject:
        """By id or title. Raises BadInput with the known names."""

    def projects(self) -> Sequence[VerifiedProject]: ...

    def damaged(self) -> Sequence[Problem]:
        """One for each project that is kept and cannot be read; `projects` leaves it out."""


class Identity(Protocol):
    """This computer's libp2p identity."""

    @property
    def path(self) -> Path:
        """Where the private key lies (0600); made at first use."""

    @property
    def peer_id(self) -> str:
        """base58 libp2p peer id."""


class SecretStore(Protocol):
    """Small secrets by name, kept where other users and programs that merely read files cannot get at them."""

    def get(self, name: str) -> str | None:
        """None when there is none of that name. Raises SkepError when the store cannot be asked."""

    def put(self, name: str, secret: str) -> None:
        """Keep it, in place of an earlier one. Raises SkepError, and then it is not kept."""

    def delete(self, name: str) -> None:
        """Forget it; nothing happens when there is none. Raises SkepError."""


class Invitations(Protocol):
    """What this computer was given to take part in projects that are not open."""

    def present(self, project: VerifiedProject) -> str:
        """The text of a good invitation to the project, "" where it needs none. Raises SkepError."""


class Devices(Protocol):
    def list(self) -> Sequence[Device]:
        """Everything found, usable or with the reason why not. Never raises."""


class Sensor(Protocol):
    """One outside source of readings; runs in a thread of its own, so that it may block without harm.

    `conditions` are all that it may ever tell. It is opened by `read`, in the thread that goes on reading; a source that
    came back after a failure is simply read again.
    """

    @property
    def name(self) -> str:
        """What it is called in settings and logs: "X11 screen saver extension"."""

    @property
    def conditions(self) -> Sequence[Condition]: ...

    def read(self) -> Seen:
        """The readings now; one that does not exist here is `missing`. Anything it raises counts as silence."""

    def wait(self, seconds: float) -> None:
        """Return when something happened, where the source tells by itself, and else after `seconds`."""

    def close(self) -> None:
        """End a `wait` and let go of the source. From any thread, more than once."""


@runtime_checkable
class TellsItself(Protocol):
    """A Sensor that need not be read often, since its `wait` ends when something happened, or since little can."""

    @property
    def tells(self) -> bool:
        """Whether that is so now: its source may be there or not, or be one that has to be asked."""


class Pauses(Protocol):
    """A manual pause that survives a restart."""

    def save(self, *, paused: bool, until: float | None) -> None: ...

    def load(self) -> tuple[bool, float | None]: ...


Observer = Callable[[messages.Message, Snapshot], None]
"""Told of every message after it was applied, in the engine's thread. Must return quickly."""
