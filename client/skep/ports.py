"""The ports of the engine as Protocols, which adapters and the tests' fakes implement.

They contain no behaviour. Every port has one contract test that runs on the real adapter and on the fake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Protocol, runtime_checkable

from skep.core.device import Device
from skep.core.policy.allowance import Change, Reaction
from skep.core.policy.conditions import Condition, Seen
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef, ShardRef
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.record.contributions import Contribution, Evaluation, Tally, Totals
from skep.core.record.usage import Earned, Proportion, Quarter, Spent
from skep.core.session import messages
from skep.core.session.losses import LEFT
from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import Problem, Text

Post = Callable[[messages.Message], None]
"""Adds a message to the engine's queue; may be called from any thread."""


class Clock(Protocol):
    def wall(self) -> float:
        """Seconds since the Unix epoch; not monotonic."""

    def monotonic(self) -> float:
        """Monotonic seconds, for measuring durations."""

    def zone(self) -> tzinfo:
        """This computer's time zone as it is now, summer time included."""


class Worker(Protocol):
    """The worker process, one at a time. Its reports, and what its processes use, are posted; WorkerExited last."""

    def start(self, options: messages.WorkerOptions) -> None:
        """Start the process and send it the start message. Raises SkepError when it cannot be started."""

    def tell(self, message: messages.ToWorker) -> None:
        """Send one message; it is not an error if the worker has exited (WorkerExited reports it)."""

    def stop(self, reason: Text = LEFT, within: float = 2.0) -> None:
        """Ask the worker to exit, kill its remaining process tree after `within` seconds. Returns immediately.

        A worker that says in time that it saves its state (WorkerSaving) has, at the first call, as long as it asks for.
        """

    def end_stuck(self, within: float = 2.0) -> None:
        """As `stop`, for a worker that may not answer: first it writes the stacks of its threads to its log."""

    def close(self, within: float = 2.0) -> None:
        """As `stop`, but returns when all processes of the worker have ended."""


class Ledger(Protocol):
    """The record of contributions. Every call is durable when it returns. Raises StorageError."""

    def record(self, project_id: str, contribution: Contribution) -> None:
        """Insert the contribution, or replace the one with its id. A confirmed or lost one is never changed."""

    def pending(self, project_id: str) -> Sequence[Contribution]: ...

    def totals(self, project_id: str | None = None) -> Totals:
        """Totals of one project, or of all."""

    def contributions(self, project_id: str | None = None) -> Sequence[Contribution]:
        """Oldest first."""

    def save_position(self, project_id: str, position: int) -> None: ...

    def position(self, project_id: str) -> int:
        """Samples drawn or left to others so far; 0 for an unknown project."""

    def save_evaluation(self, project_id: str, evaluation: Evaluation) -> None: ...

    def evaluations(self, project_id: str) -> Sequence[Evaluation]: ...

    def projects(self) -> Sequence[str]:
        """Ids of the projects with at least one contribution or any usage, the earliest first."""

    def record_change(self, change: Change) -> None:
        """Add to the timeline; deletes entries more than a year older, except the one in force a year before."""

    def changes(self, begin: float, end: float) -> Sequence[Change]:
        """The timeline in [begin, end) of wall clock seconds, oldest first.

        The first entry is the one in force at `begin`, if any, although it is older.
        """

    def record_reaction(self, reaction: Reaction) -> None:
        """Store a reaction; only the last thousand are kept."""

    def reactions(self, most: int) -> Sequence[Reaction]:
        """At most the `most` latest reactions, oldest first."""

    def add_usage(self, quarter: Quarter) -> None:
        """Add to the project's usage in that quarter of an hour."""

    def usage(self, begin: float, end: float) -> Sequence[Quarter]:
        """The usage of each project in the quarters that begin in [begin, end), oldest first."""

    def spent(self, project_id: str | None = None) -> Spent:
        """The total usage of one project, or of all."""

    def alive(self) -> float | None:
        """When usage was last added, in wall clock seconds; None if never."""

    def earned(self, begin: float, end: float) -> Sequence[Earned]:
        """Contributions confirmed or lost in the quarters of an hour that begin in [begin, end), oldest first."""

    def lost_reasons(self, project_id: str | None = None) -> Mapping[Text, Tally]:
        """Lost contributions by reason, the most frequent first."""

    def proportion(self, project_id: str | None = None) -> Proportion:
        """Confirmed samples and those of the whole swarm, over the epochs for which both are known."""

    def close(self) -> None: ...


class Shards(Protocol):
    """Downloads and verifies a project's data, in its own threads; posts the results."""

    def fetch_index(self, project: VerifiedProject, post: Post) -> None:
        """Posts IndexArrived or IndexFailed."""

    def fetch(self, shard: ShardRef | FileRef, reach: Reach, post: Post) -> None:
        """Posts ShardProgress repeatedly, finally ShardArrived or ShardFailed. `reach` is that of its project."""

    def stop(self) -> None:
        """End all downloads, and post nothing for them any more; returns immediately. Partial files are kept, to be continued
        when they are asked for again; the others may be evicted for what is asked for later.
        """

    def close(self) -> None:
        """Stop downloads; partial files are kept, to be continued later."""


class SettingsStore(Protocol):
    def load(self) -> dict[str, Value]:
        """All known settings with their values, or else defaults. Raises SettingsError."""

    def save(self, values: dict[str, Value]) -> None:
        """Write these settings; the rest of the file is unchanged."""


class Catalogue(Protocol):
    """The projects known in this home."""

    def add(self, source: str, *, consent: bool = False) -> VerifiedProject:
        """Verify the manifest at a path, URL or join link and store it. `consent` permits a revision that uses more.

        Raises ManifestError, BadInput, StorageError.
        """

    def find(self, name: str) -> VerifiedProject:
        """The project with this id or title. Raises BadInput with the known names."""

    def projects(self) -> Sequence[VerifiedProject]: ...

    def damaged(self) -> Sequence[Problem]:
        """One problem for each stored project that cannot be read; `projects` omits it."""


class Identity(Protocol):
    """This computer's libp2p identity in a project."""

    @property
    def path(self) -> Path:
        """The path of the private key (0600), which is created at first use."""

    @property
    def peer_id(self) -> str:
        """The libp2p peer id in base58."""


class SecretStore(Protocol):
    """Small secrets by name, stored where other users and programs that only read files cannot access them."""

    def get(self, name: str) -> str | None:
        """The secret, None if there is none of that name. Raises SkepError when the store cannot be accessed."""

    def put(self, name: str, secret: str) -> None:
        """Store a secret, replacing an earlier one. Raises SkepError if it was not stored."""

    def delete(self, name: str) -> None:
        """Delete a secret, if there is one. Raises SkepError."""


class Invitations(Protocol):
    """The invitations of this computer to projects that are not open."""

    def present(self, project: VerifiedProject) -> str:
        """The text of a valid invitation to the project, "" if it needs none. Raises SkepError."""


class Revocations(Protocol):
    """The publisher's lists of revoked invitations."""

    def watch(self, manifest: Manifest, reach: Reach, post: Post) -> str:
        """The text of the newest list that is known, "" without one; later ones are posted as RevocationsArrived.

        Replaces an earlier watch.
        """

    def rest(self) -> None:
        """End the watch, until the next one."""

    def close(self) -> None:
        """End it."""


class Devices(Protocol):
    def list(self) -> Sequence[Device]:
        """All devices, unusable ones with a reason. Never raises."""


class Sensor(Protocol):
    """A source of readings; it is read in its own thread, so it may block.

    `conditions` are all that it can report. `read` opens the source, in the thread that continues to read it; after a
    failure it is read again.
    """

    @property
    def name(self) -> str:
        """The sensor's name in `skep sensors` and in logs: "X11 screen saver extension"."""

    @property
    def conditions(self) -> Sequence[Condition]: ...

    def read(self) -> Seen:
        """The current readings; one without a source is `missing`. Any exception makes all readings silent."""

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or earlier on a notification of the source."""

    def close(self) -> None:
        """End a `wait` and release the source. May be called from any thread and repeatedly."""


@runtime_checkable
class TellsItself(Protocol):
    """A Sensor that need not be read often, since its `wait` ends on a notification, or since changes are rare."""

    @property
    def tells(self) -> bool:
        """Whether this applies now: the source may be missing, or one that must be polled."""


class Pauses(Protocol):
    """Storage of a manual pause across restarts."""

    def save(self, *, paused: bool, until: float | None) -> None: ...

    def load(self) -> tuple[bool, float | None]: ...


Observer = Callable[[messages.Message, Snapshot], None]
"""Called for every message after it was applied, in the engine's thread. Must return quickly."""
