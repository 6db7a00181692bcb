"""The verb `join`: a manifest or a known project's name, the fit check, then one run in its swarm.

`Run` is that run, from the first stage to the end; `demo` and `self-test` hold one too.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli.interrupt import INTERRUPTED, Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show import result
from skep.cli.show.renderers import Events, Renderer, renderer_for
from skep.cli.show.speech import say, tr
from skep.cli.verbs.packs import ensure
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import ContributionState
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Text
from skep.engine.engine import Engine
from skep.language import units
from skep.services import joining, results

PATIENCE: Final = 120.0
"""Seconds a limited run may take to join, when its own limit is shorter: a swarm takes a while to be reached."""
BEAT: Final = 0.1
"""Seconds the loop waits for a message at most, so that it sees a signal and the clock in time."""


def add(verbs: Verbs) -> None:
    more = tr(
        "Ctrl-C leaves immediately, and exits with 0 once joined; `skep leave` in another terminal waits for the next round. "
        "With --for, the time counts from joining. SKEP_PEERS adds addresses of peers to start from."
    )
    parser = verbs.verb("join", _join, tr("join a project's swarm and train until Ctrl-C"), more)
    parser.add_argument(
        "project", metavar="NAME|MANIFEST|LINK", help=tr("a known project, a manifest's path or URL, or a join link")
    )
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument(
        "--for", metavar=tr("TIME"), dest="span", type=spelled.seconds, help=tr("leave after this, as 60s or 1h")
    )
    limit.add_argument(
        "--epochs", metavar="N", type=spelled.count, help=tr("leave after N epochs ended with this computer")
    )


def _join(context: Context, arguments: argparse.Namespace) -> int:
    seeds = spelled.addresses(context.environ.get("SKEP_PEERS", ""))
    with bootstrap.hold(context.home) as mended:
        project = known(context, arguments.project)
        joining.check_invitation(context.home, project)
        remarks(context, project)
        ensure(context)
        join, ending = m.Join(project, seeds), Ending(seconds=arguments.span, epochs=arguments.epochs)
        with bootstrap.build(context.home, join, mended=mended) as engine, Interrupts() as interrupts:
            run = Run(engine, renderer_for(context.terminal), ending)
            code = run.go(join, interrupts)
    if run.snapshot.finished:
        offer_result(context, project)
    return code


def offer_result(context: Context, project: VerifiedProject) -> None:
    """Say where the model is, if this computer has kept one of the project's run."""
    if kept := results.kept(context.home, project.manifest):
        body = {"event": "result", "epoch": kept.epoch, "path": str(kept.path)}
        context.terminal.show(body, [result.sentence(kept, project.id)])


def known(context: Context, name: str) -> VerifiedProject:
    """The project of that name; a manifest's path or URL is verified and kept first."""
    catalogue = bootstrap.catalogue(context.home)
    if not is_source(name):
        return catalogue.find(name)
    project = catalogue.add(name)
    context.terminal.note(
        tr("{title} is published by {fingerprint}.", title=project.title, fingerprint=project.fingerprint)
    )
    return project


def is_source(name: str) -> bool:
    """Whether `name` means a file or an address, and not a project's name."""
    return "/" in name or name.endswith(".json") or Path(name).is_file()


def remarks(context: Context, project: VerifiedProject) -> None:
    """Check that the project fits this computer, and pass on what the check has to say. Raises DoesNotFit."""
    for remark in joining.check_fit(context.home, project):
        context.terminal.note(say(remark))


# --- the run


@dataclass(frozen=True)
class Goal:
    """At least `confirmed` epochs averaged with others, and the held-out loss at `loss_ratio` of the first or less."""

    confirmed: int
    loss_ratio: float


@dataclass(frozen=True)
class Ending:
    """Any one of these ends the run; None never does.

    `seconds` count from joining; `epochs` are contributions of this run that became confirmed or lost; a `goal` is
    reached by what was learned; `confirmed` are those of this run's epochs; `total_seconds` count from the start,
    joined or not.
    """

    seconds: float | None = None
    epochs: int | None = None
    goal: Goal | None = None
    confirmed: int | None = None
    total_seconds: float | None = None


@dataclass
class Course:
    """What the run has seen so far; fed with the printed events. Monotonic seconds."""

    ending: Ending
    started: float
    joined: float | None = None
    ended: int = 0
    confirmed: int = 0
    peers: int = 0
    """The most other peers averaged with in one round."""
    losses: tuple[float, ...] = ()
    """The first held-out loss and the last, or as many as there are."""
    bytes_sent: int = 0
    bytes_received: int = 0
    _open: set[str] = field(default_factory=set)
    """The contributions of this run that are pending."""

    def see(self, event: dict[str, Any], now: float) -> None:
        match event["event"]:
            case "joined" if self.joined is None:
                self.joined = now
            case "contribution":
                self._contribution(event)
            case "progress":
                self.bytes_sent, self.bytes_received = event["bytes_sent"], event["bytes_received"]
            case "evaluation" if event["loss"] is not None:
                self.losses = (*self.losses[:1], event["loss"])

    def _contribution(self, event: dict[str, Any]) -> None:
        # what an earlier run left pending is told as lost at the start, and is no epoch of this run
        if event["state"] == ContributionState.PENDING:
            self._open.add(event["id"])
        elif event["id"] in self._open:
            self._open.remove(event["id"])
            self.ended += 1
            self.confirmed += event["state"] == ContributionState.CONFIRMED
            self.peers = max(self.peers, event["peers"])

    def over(self, now: float) -> bool:
        """Whether the run shall leave now."""
        ending = self.ending
        # a limited run that has not joined counts from its start, and has some patience
        since, least = (self.started, PATIENCE) if self.joined is None else (self.joined, 0.0)
        return (
            (ending.epochs is not None and self.ended >= ending.epochs)
            or (ending.goal is not None and self.reached(ending.goal))
            or (ending.confirmed is not None and self.confirmed >= ending.confirmed)
            or (ending.total_seconds is not None and now - self.started >= ending.total_seconds)
            or (ending.seconds is not None and now - since >= max(ending.seconds, least))
        )

    @property
    def loss_ratio(self) -> float | None:
        """The last held-out loss as a fraction of the first; None before there are two."""
        return self.losses[-1] / self.losses[0] if len(self.losses) > 1 and self.losses[0] > 0 else None

    def reached(self, goal: Goal) -> bool:
        ratio = self.loss_ratio
        return self.confirmed >= goal.confirmed and ratio is not None and ratio <= goal.loss_ratio


class Run:
    """Joins, shows, and leaves when its ending has come, the person asks, or the engine gives up."""

    def __init__(self, engine: Engine, renderer: Renderer, ending: Ending) -> None:
        self._engine, self._clock, self._renderer = engine, bootstrap.clock(), renderer
        self._events = Events()
        self._seen: queue.SimpleQueue[tuple[m.Message, Snapshot]] = queue.SimpleQueue()
        self._began = self._left_on_request = False
        self._failure: Problem | None = None
        self.course = Course(ending, self._clock.monotonic())
        self.snapshot: Snapshot = engine.snapshot

    def go(self, join: m.Join, interrupts: Interrupts) -> int:
        """Returns the exit code when the engine has ended; `interrupts` are entered already."""
        self._engine.observe(lambda *seen: self._seen.put(seen))
        self._engine.start()
        try:
            self._engine.post(join)
            self._watch(interrupts)
        finally:
            self._engine.post(m.Quit())
            self._await_end(interrupts)
        self._take_all()
        return self._finish(interrupted=interrupts.asked)

    def _watch(self, interrupts: Interrupts) -> None:
        while not interrupts.asked:
            self._take(BEAT)
            self._take_all()
            self._renderer.look(self.snapshot, self._clock.wall(), self._clock.monotonic())
            if (self._began and self.snapshot.phase is Phase.IDLE) or self._engine.join(0):
                return
            if not self._left_on_request and self._is_over():
                self._engine.post(m.Leave(now=True))

    def _await_end(self, interrupts: Interrupts) -> None:
        """Wait for the engine's end: the worker may save its state. Another signal does not wait for that."""
        seen = interrupts.count
        while not self._engine.join(BEAT):
            with contextlib.suppress(OSError):  # the terminal may be closed
                self._take_all()
                self._renderer.look(self.snapshot, self._clock.wall(), self._clock.monotonic())
            if self.snapshot.saving and interrupts.count > seen:
                seen = interrupts.count
                self._engine.post(m.Quit())

    def _take(self, timeout: float) -> None:
        try:
            message, self.snapshot = self._seen.get(timeout=timeout)
        except queue.Empty:
            return
        self._began |= isinstance(message, m.Join)
        self._left_on_request |= isinstance(message, m.Leave)
        for event in self._events.of(message, self.snapshot):
            self.course.see(event, self._clock.monotonic())
            self._renderer.told(event, self.snapshot, self._clock.wall())

    def _take_all(self) -> None:
        while not self._seen.empty():
            self._take(0)

    def _is_over(self) -> bool:
        if self.snapshot.finished:  # it hands the run's state over, and ends by itself
            return False
        now = self._clock.monotonic()
        if self.course.over(now) and self.course.joined is None:
            self._failure = Problem(
                Text("stay.swarm_was_not_joined_within", span=units.span(now - self.course.started))
            )
        return self.course.over(now)

    def _finish(self, *, interrupted: bool) -> int:
        if not interrupted and not self._left_on_request:
            self._failure = self._failure or self.snapshot.problem
        self._renderer.close(self.snapshot.totals, self._failure)
        if interrupted:
            return 0 if self.course.joined is not None or self.snapshot.finished else INTERRUPTED
        ended_well = self._left_on_request or self.snapshot.finished
        return 0 if ended_well and self._failure is None else 1
