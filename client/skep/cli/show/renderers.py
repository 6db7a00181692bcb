"""Renderers of a run: JSON lines for programs, a live panel on a terminal, plain lines otherwise.

`Events` converts messages and snapshots to events, each a dict for one JSON line; a Renderer writes them. Both are called
from the main thread only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from msgspec import structs
from rich.console import Group
from rich.live import Live

from skep.cli.show import snapshot_view
from skep.cli.show.speech import say, tr
from skep.cli.show.terminal import Terminal, problem_event, toned
from skep.core.device import names_of
from skep.core.record.contributions import ContributionState, Totals
from skep.core.session import messages as m
from skep.core.session.control import finite
from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem

REDRAW: Final = 0.25
"""Seconds between two drawings of the panel, at least."""
EVERY: Final = 5.0
"""Seconds between two lines of progress, at least, where nothing can be redrawn."""


Event = dict[str, Any]


class Events:
    """Turns what the engine's observers are told into events.

    A stage, a pause, a problem or a wait for the last round is told when it changes. Each contribution of this run is
    pending once, and then confirmed or lost exactly once, whatever the worker repeats; one that is lost while it still
    grows is told as pending just before. What an earlier run left pending is only told as lost.
    """

    def __init__(self) -> None:
        self._before = Snapshot()
        self._told: dict[str, ContributionState] = {}
        self._growing = ""

    def of(self, message: m.Message, snapshot: Snapshot) -> list[Event]:
        """The events of one message, in the order to print them."""
        before, self._before = self._before, snapshot
        return [finite(event) for event in self._of(message, before, snapshot)]

    def _of(self, message: m.Message, before: Snapshot, now: Snapshot) -> Iterator[Event]:
        if now.stage is not None and now.stage != before.stage:
            stage = now.stage
            yield {"event": "stage", "name": str(stage.stage), "fraction": stage.fraction, "detail": stage.detail}
        if isinstance(message, m.FromWorker):
            yield from self._from_worker(message)
        allowance, stopped, was_stopped = now.allowance, now.allowance.share <= 0, before.allowance.share <= 0
        if stopped != was_stopped or (stopped and allowance != before.allowance):
            yield {"event": "paused", "share": allowance.share, "until": allowance.until, "reason": allowance.reason}
        if now.leaving_until is not None and now.leaving_until != before.leaving_until:
            yield {"event": "leaving", "until": now.leaving_until}
        if isinstance(message, m.WorkerNoticed | m.ProblemArose) and message.over is not None:
            yield {"event": "problem_over", "message": message.problem.title}
        if isinstance(message, m.WorkerFinished):
            yield {"event": "finished", "message": now.finished}
        if now.problem is not None and now.problem != before.problem:
            yield problem_event(now.problem)

    def _from_worker(self, message: m.FromWorker) -> list[Event]:
        match message:
            case m.WorkerJoined(devices=devices):
                return [{"event": "joined"} | structs.asdict(message) | {"devices": [asdict(each) for each in devices]}]
            case m.WorkerProgress(progress=progress, contribution=growing):
                self._growing = growing or self._growing
                return [{"event": "progress"} | asdict(progress)]
            case m.WorkerEvaluated(evaluation=evaluation):
                return [{"event": "evaluation"} | asdict(evaluation)]
            case m.ContributionPending():
                return self._contribution(message, ContributionState.PENDING)
            case m.ContributionConfirmed():
                return self._contribution(message, ContributionState.CONFIRMED)
            case m.ContributionLost():
                return self._contribution(message, ContributionState.LOST)
            case m.WorkerStage() | m.WorkerPaused() | m.WorkerMemory() | m.ShardWanted():
                return []
            case m.WorkerNoticed() | m.WorkerFailed() | m.WorkerFinished() | m.WorkerSaving():
                return []  # shown as the snapshot's problem, or as its end

    def _contribution(
        self, message: m.ContributionPending | m.ContributionConfirmed | m.ContributionLost, state: ContributionState
    ) -> list[Event]:
        before = self._told.get(message.id)
        if before not in (None, ContributionState.PENDING) or before is state:
            return []
        self._told[message.id] = state
        body = {"event": "contribution", "reason": "", "peers": 0} | structs.asdict(message) | {"state": str(state)}
        if before is None and state is not ContributionState.PENDING and message.id == self._growing:
            return [body | {"state": str(ContributionState.PENDING), "reason": "", "peers": 0}, body]
        return [body]


class Renderer:
    """A renderer that shows nothing, and keeps the problem that occurred."""

    failure: Problem | None = None

    def told(self, event: Event, snapshot: Snapshot, wall: float) -> None:
        """Something happened."""

    def look(self, snapshot: Snapshot, wall: float, now: float) -> None:
        """A moment went by; `wall` is seconds since the epoch, `now` monotonic seconds."""

    def close(self, _totals: Totals, failure: Problem | None) -> None:
        """The run is over; `failure` is the reason, if the user did not end it."""
        self.failure = failure


def renderer_for(terminal: Terminal) -> Renderer:
    """The renderer for this terminal: JSON lines, a panel drawn in place, or plain lines."""
    if terminal.json:
        return JsonRenderer(terminal)
    return PanelRenderer(terminal) if terminal.out.is_terminal else PlainRenderer(terminal)


class JsonRenderer(Renderer):
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._said: Problem | None = None

    def told(self, event: Event, _snapshot: Snapshot, _wall: float) -> None:
        self._terminal.object(event)
        if event["event"] == "problem":
            self._said = Problem(event["title"], event["hint"])
            self._terminal.sentence(self._said)

    def close(self, totals: Totals, failure: Problem | None) -> None:
        if failure is not None and failure != self._said:
            self._terminal.problem(failure)
        self._terminal.object({"event": "left", "totals": asdict(totals)})


class PanelRenderer(Renderer):
    """Redraws in place; what is on screen at the end stays there."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._live = Live(
            console=terminal.out,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._drawn: float | None = None

    def look(self, snapshot: Snapshot, wall: float, now: float) -> None:
        if self._drawn is None:
            self._live.start()
        elif now - self._drawn < REDRAW:
            return
        self._drawn = now
        lines = snapshot_view.panel(snapshot, wall, self._terminal.out.width)
        self._live.update(Group(*(toned(line) for line in lines)), refresh=True)

    def close(self, totals: Totals, failure: Problem | None) -> None:
        self._live.stop()
        if failure is not None:
            self._terminal.sentence(failure)
        self._terminal.write(snapshot_view.farewell(totals))


class PlainRenderer(Renderer):
    """One line for each thing that happens once, and a line of progress now and then."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._stage = ""
        self._said: Problem | None = None
        self._written: float | None = None

    def told(self, event: Event, snapshot: Snapshot, wall: float) -> None:
        match event["event"]:
            case "stage" if event["name"] != self._stage:
                self._stage = event["name"]
                self._terminal.write(f"{say(Stage(event['name']).label)} …")
            case "joined":
                joined = {name: event[name] for name in ("epoch", "peer_id")}
                joined["device"] = names_of([each["name"] for each in event["devices"]]) or event["device"]
                self._terminal.write(tr("Joined at epoch {epoch} on {device} as {peer_id}.", **joined))
                if event["client_mode"]:
                    self._terminal.write(tr("This computer is behind a router: makes connections, accepts none."))
                elif event["relayed"]:
                    self._terminal.write(tr("This computer is behind a router: others connect through a seed."))
            case "paused":
                self._terminal.write(snapshot_view.reason(snapshot))
            case "finished":
                self._terminal.write(say(snapshot.finished))
            case "leaving" if snapshot.saving:
                self._terminal.write(snapshot_view.sentence(snapshot, wall))
            case "problem":
                self._said = Problem(event["title"], event["hint"])
                self._terminal.sentence(self._said)
            case "problem_over":
                self._terminal.write(say(event["message"]))
            case _:
                pass  # the line of progress tells the rest

    def look(self, snapshot: Snapshot, wall: float, now: float) -> None:
        begun = snapshot.progress is not None or (snapshot.joined and snapshot.phase is not Phase.IDLE)
        if not begun or (self._written is not None and now - self._written < EVERY):
            return
        self._written = now
        loads = snapshot.phase is Phase.TRAINING and snapshot.stage is not None
        waits = loads or snapshot.leaving_until is not None or bool(snapshot.waiting) or snapshot.progress is None
        self._terminal.write(snapshot_view.sentence(snapshot, wall) if waits else snapshot_view.update(snapshot))

    def close(self, totals: Totals, failure: Problem | None) -> None:
        if failure is not None and failure != self._said:
            self._terminal.sentence(failure)
        self._terminal.write(snapshot_view.farewell(totals))
