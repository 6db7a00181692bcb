"""Typed stand-ins for the ports; they pass the same contract tests as the real adapters.

They keep everything in memory and start no thread: they post in the caller's thread.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path

from manifests import raw
from skep.core.device import Device, DeviceKind
from skep.core.errors import BadInput, SkepError
from skep.core.policy.allowance import Change, Reaction
from skep.core.policy.conditions import Condition, Seen
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef, Project, ShardIndex, ShardRef, TextLayout
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally, Totals
from skep.core.record.usage import Earned, Proportion, Quarter, Spent
from skep.core.session import messages as m
from skep.core.session.losses import LEFT
from skep.core.session.phases import SwarmProgress
from skep.core.settings.settings import DEFAULTS
from skep.core.text import Problem, Text, verbatim
from skep.ports import Post
from skep.recipes.registry import parse_manifest

Values = dict[str, bool | int | float | str]


def together(each: Iterable[Spent]) -> Spent:
    return functools.reduce(Spent.plus, each, Spent())


# --- values


def make_project(id: str = "tiny", title: str = "Tiny model", manifest: bytes | None = None) -> VerifiedProject:  # noqa: A002 - the field's name
    manifest = manifest or raw()
    return VerifiedProject(
        id=id,
        title=title,
        run_id=f"{id}.0123",
        fingerprint="AB12 CD34",
        revision=1,
        source="/manifests/tiny.json",
        manifest=parse_manifest(manifest),
        text=manifest.decode(),
    )


def make_index(shards: int = 2) -> ShardIndex:
    refs = tuple(ShardRef(f"{number:064x}", bytes=1000, samples=10) for number in range(1, shards + 1))
    return ShardIndex(TextLayout(128, 256), shards=refs, held_out=(ShardRef("f" * 64, bytes=500, samples=5),))


def make_progress(epoch: int = 3, peers: int = 2, loss: float | None = 4.0) -> SwarmProgress:
    return SwarmProgress(
        epoch=epoch,
        peers=peers,
        loss=loss,
        samples_per_second=10.0,
        share_asked=1.0,
        share_measured=1.0,
        samples_accumulated=100,
        target_batch_size=512,
        compute_seconds=1.0,
        nap_seconds=0.0,
        waiting_seconds=0.0,
        bytes_sent=1,
        bytes_received=2,
    )


def make_joined(epoch: int = 3, device: str = "CPU", *, heavy: bool = False) -> m.WorkerJoined:
    return m.WorkerJoined("QmPeer", device, "float32", epoch, step_batch=8, micro_batch=4, heavy=heavy)


# --- ports


@dataclass
class FakeClock:
    """Does not advance by itself."""

    wall_now: float = 1_000_000.0
    monotonic_now: float = 0.0

    def wall(self) -> float:
        return self.wall_now

    def monotonic(self) -> float:
        return self.monotonic_now

    def zone(self) -> tzinfo:
        return UTC

    def advance(self, seconds: float) -> None:
        self.wall_now += seconds
        self.monotonic_now += seconds


@dataclass
class StillClock:
    """A single clock, passed as a function; the test sets `now`."""

    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeWorker:
    """Follows a script: posts `on_start` when started, and WorkerExited when stopped (unless `stubborn`).

    After FinishTraining it exits too, if `rounds_come`.
    """

    post: Post
    on_start: Sequence[m.Message] = ()
    cannot_start: SkepError | None = None
    stubborn: bool = False
    rounds_come: bool = True
    starts: list[m.WorkerOptions] = field(default_factory=list)
    told: list[m.ToWorker] = field(default_factory=list)
    stops: int = 0
    ended_stuck: int = 0
    running: bool = False
    closed: bool = False

    def start(self, options: m.WorkerOptions) -> None:
        assert not self.running, "two workers at a time"
        if self.cannot_start:
            raise self.cannot_start
        self.starts.append(options)
        self.running = True
        for message in self.on_start:
            self.post(message)

    def tell(self, message: m.ToWorker) -> None:
        if self.running:
            self.told.append(message)
            if isinstance(message, m.FinishTraining) and self.rounds_come and not self.stubborn:
                self.exit(0)

    def stop(self, reason: Text = LEFT, within: float = 2.0) -> None:
        self.stops += 1
        if not self.stubborn:
            self.exit(0)

    def end_stuck(self, within: float = 2.0) -> None:
        self.ended_stuck += 1
        self.exit(-9)

    def close(self, within: float = 2.0) -> None:
        self.closed = True
        self.exit(-9)

    def exit(self, code: int) -> None:
        """End the process; called by the fake itself or by a test."""
        if self.running:
            self.running = False
            self.post(m.WorkerExited(code))


@dataclass
class FakeLedger:
    """Every write raises `failing`, as with a full disk."""

    failing: SkepError | None = None
    closed: bool = False
    rows: dict[str, tuple[str, Contribution]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    measured: dict[str, list[Evaluation]] = field(default_factory=dict)
    timeline: list[Change] = field(default_factory=list)
    reacted: list[Reaction] = field(default_factory=list)
    quarters: list[Quarter] = field(default_factory=list)
    added_at: float | None = None

    def record(self, project_id: str, contribution: Contribution) -> None:
        self._write()
        before = self.rows.get(contribution.id)
        if before is None or before[1].state is ContributionState.PENDING:
            self.rows[contribution.id] = (project_id, contribution)

    def pending(self, project_id: str) -> Sequence[Contribution]:
        return [row for row in self.contributions(project_id) if row.state is ContributionState.PENDING]

    def totals(self, project_id: str | None = None) -> Totals:
        rows = self.contributions(project_id)
        return Totals(**{state.value: _tally(rows, state) for state in ContributionState})

    def contributions(self, project_id: str | None = None) -> Sequence[Contribution]:
        return [row for project, row in self.rows.values() if project_id in (None, project)]

    def save_position(self, project_id: str, position: int) -> None:
        self._write()
        self.positions[project_id] = position

    def position(self, project_id: str) -> int:
        return self.positions.get(project_id, 0)

    def save_evaluation(self, project_id: str, evaluation: Evaluation) -> None:
        self._write()
        self.measured.setdefault(project_id, []).append(evaluation)

    def evaluations(self, project_id: str) -> Sequence[Evaluation]:
        return list(self.measured.get(project_id, []))

    def record_change(self, change: Change) -> None:
        self._write()
        self.timeline.append(change)

    def changes(self, begin: float, end: float) -> Sequence[Change]:
        ordered = sorted(self.timeline, key=lambda change: change.at)
        before = [change for change in ordered if change.at < begin][-1:]
        return [*(change for change in before if change.at < end), *(c for c in ordered if begin <= c.at < end)]

    def record_reaction(self, reaction: Reaction) -> None:
        self._write()
        self.reacted.append(reaction)

    def reactions(self, most: int) -> Sequence[Reaction]:
        return self.reacted[-most:] if most else []

    def projects(self) -> Sequence[str]:
        named = (*(project for project, _ in self.rows.values()), *(each.project for each in self.quarters))
        return list(dict.fromkeys(named))

    def add_usage(self, quarter: Quarter) -> None:
        self._write()
        same = [each for each in self.quarters if (each.project, each.begin) == (quarter.project, quarter.begin)]
        spent = together(each.spent for each in (*same, quarter))
        self.quarters = [*(each for each in self.quarters if each not in same), replace(quarter, spent=spent)]
        self.added_at = quarter.begin

    def usage(self, begin: float, end: float) -> Sequence[Quarter]:
        inside = [each for each in self.quarters if begin <= each.begin < end]
        return sorted(inside, key=lambda each: (each.begin, each.project))

    def spent(self, project_id: str | None = None) -> Spent:
        return together(each.spent for each in self.quarters if project_id in (None, each.project))

    def alive(self) -> float | None:
        return self.added_at

    def earned(self, begin: float, end: float) -> Sequence[Earned]:
        return []  # it stores no times

    def lost_reasons(self, project_id: str | None = None) -> Mapping[str, Tally]:
        lost = [each for each in self.contributions(project_id) if each.state is ContributionState.LOST]
        reasons = Counter(each.reason for each in lost)
        return {
            reason: _tally_of(each for each in lost if each.reason == reason) for reason, _ in reasons.most_common()
        }

    def proportion(self, project_id: str | None = None) -> Proportion:
        confirmed = [each for each in self.contributions(project_id) if each.state is ContributionState.CONFIRMED]
        known = [each for each in confirmed if each.swarm]
        return Proportion(sum(each.samples for each in known), sum(each.swarm for each in known))

    def close(self) -> None:
        self.closed = True

    def _write(self) -> None:
        if self.failing:
            raise self.failing


def _tally_of(rows: Iterable[Contribution]) -> Tally:
    samples = [row.samples for row in rows]
    return Tally(contributions=len(samples), samples=sum(samples))


def _tally(rows: Iterable[Contribution], state: ContributionState) -> Tally:
    return _tally_of(row for row in rows if row.state is state)


@dataclass
class FakeShards:
    """Answers immediately: the index, or `problem`; shards get paths under /shards unless they are in `missing`."""

    index: ShardIndex | None = field(default_factory=make_index)
    problem: Problem = field(default_factory=lambda: Problem(verbatim("The shard server does not answer.")))
    missing: frozenset[str] = frozenset()
    hold: bool = False
    """Keep the answers in `held` instead; the test posts them later."""
    held: list[Callable[[], None]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    stopped: int = 0
    closed: bool = False

    def fetch_index(self, project: Project, post: Post) -> None:
        answer = m.IndexArrived(self.index) if self.index else m.IndexFailed(self.problem)
        self._answer(lambda: post(answer))

    def fetch(self, shard: ShardRef | FileRef, reach: Reach, post: Post) -> None:
        self.fetched.append(shard.sha256)
        if shard.sha256 in self.missing:
            self._answer(lambda: post(m.ShardFailed(shard.sha256, self.problem)))
        else:
            self._answer(lambda: post(m.ShardArrived(shard.sha256, f"/shards/{shard.sha256}")))

    def stop(self) -> None:
        self.stopped += 1
        self.held.clear()

    def close(self) -> None:
        self.closed = True

    def _answer(self, answer: Callable[[], None]) -> None:
        if self.hold:
            self.held.append(answer)
        else:
            answer()


@dataclass
class FakeSettings:
    values: Values = field(default_factory=lambda: dict(DEFAULTS))
    failing: SkepError | None = None

    def load(self) -> Values:
        if self.failing:
            raise self.failing
        return dict(self.values)

    def save(self, values: Values) -> None:
        if self.failing:
            raise self.failing
        self.values = self.values | values


@dataclass
class FakePauses:
    paused: bool = False
    until: float | None = None

    def save(self, *, paused: bool, until: float | None) -> None:
        self.paused, self.until = paused, until if paused else None

    def load(self) -> tuple[bool, float | None]:
        return self.paused, self.until


@dataclass
class FakeCatalogue:
    """Projects by source: `offered` can be added, `known` were added."""

    offered: dict[str, Project] = field(default_factory=dict)
    known: list[Project] = field(default_factory=list)

    def add(self, source: str, *, consent: bool = False) -> Project:
        if source not in self.offered:
            raise BadInput(verbatim(f"There is no manifest at {source}."))
        project = replace(self.offered[source], source=source)
        self.known = [*(other for other in self.known if other.id != project.id), project]
        return project

    def find(self, name: str) -> Project:
        for project in self.known:
            if name in (project.id, project.title):
                return project
        known = ", ".join(project.id for project in self.known) or "none"
        raise BadInput(verbatim(f"No project here is called {name}."), verbatim(f"Known projects: {known}."))

    def projects(self) -> Sequence[Project]:
        return list(self.known)

    def damaged(self) -> Sequence[Problem]:
        return []


@dataclass
class FakeSecrets:
    """Every call raises `failing`, as with a locked keyring."""

    failing: SkepError | None = None
    kept: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str | None:
        self._check()
        return self.kept.get(name)

    def put(self, name: str, secret: str) -> None:
        self._check()
        self.kept[name] = secret

    def delete(self, name: str) -> None:
        self._check()
        self.kept.pop(name, None)

    def _check(self) -> None:
        if self.failing:
            raise self.failing


@dataclass
class FakeInvitations:
    """Presents `text` for a project that requires an invitation, or raises `failing`."""

    text: str = ""
    failing: SkepError | None = None

    def present(self, project: VerifiedProject) -> str:
        if not project.manifest.by_invitation:
            return ""
        if self.failing:
            raise self.failing
        return self.text


@dataclass
class FakeRevocations:
    """Knows `text`; a test posts what arrives later through `posts`, of which rest takes the last one."""

    text: str = ""
    posts: list[Post] = field(default_factory=list)

    def watch(self, manifest: Manifest, reach: Reach, post: Post) -> str:
        if not manifest.by_invitation:
            return ""
        self.posts.append(post)
        return self.text

    def rest(self) -> None:
        self.posts.clear()

    close = rest


@dataclass(frozen=True)
class FakeIdentity:
    path: Path = Path("/home/someone/identity.key")
    peer_id: str = "QmFakePeer"


@dataclass(frozen=True)
class FakeDevices:
    devices: tuple[Device, ...] = (Device(DeviceKind.CPU, 0, "Some processor", memory_total=8 << 30),)

    def list(self) -> Sequence[Device]:
        return self.devices


@dataclass
class FakeSensor:
    """Reports `seen`; every reading raises `failing` if that is set, and waits while `hanging` is set.

    `wait` returns when `happen` is called, or after the given seconds.
    """

    seen: Seen
    name: str = "a sensor"
    failing: Exception | None = None
    reads: int = 0
    waits: list[float] = field(default_factory=list)
    closed: bool = False
    hanging: threading.Event | None = None
    happened: threading.Event = field(default_factory=threading.Event)
    reading: threading.Event = field(default_factory=threading.Event)
    own: tuple[Condition, ...] | None = None

    @property
    def conditions(self) -> Sequence[Condition]:
        return tuple(self.seen) if self.own is None else self.own

    def read(self) -> Seen:
        self.reads += 1
        self.reading.set()
        if self.hanging:
            self.hanging.wait(30)
        if self.failing:
            raise self.failing
        return self.seen

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        if not self.closed:
            self.happened.wait(seconds)
            self.happened.clear()

    def happen(self) -> None:
        self.happened.set()

    def close(self) -> None:
        self.closed = True
        self.happened.set()
