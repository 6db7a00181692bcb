"""How a run shows itself: JSON lines for programs, a live panel on a terminal, plain lines anywhere else.

A face is told events and snapshots and writes; it decides nothing. Called from the main thread only.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from rich.console import Group
from rich.live import Live

from skep.cli.show import snapshot_view
from skep.cli.show.events import left
from skep.cli.show.speech import tr
from skep.cli.show.terminal import Terminal, toned
from skep.core.record.contributions import Totals
from skep.core.session.phases import Stage
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem

REDRAW: Final = 0.25
"""Seconds between two drawings of the panel, at least."""
EVERY: Final = 5.0
"""Seconds between two lines of progress, at least, where nothing can be redrawn."""


class Face(Protocol):
    def told(self, event: dict[str, Any], snapshot: Snapshot, wall: float) -> None:
        """Something happened."""

    def look(self, snapshot: Snapshot, wall: float, now: float) -> None:
        """A moment went by; `wall` is seconds since the epoch, `now` monotonic seconds."""

    def close(self, totals: Totals, failure: Problem | None) -> None:
        """The run is over; `failure` is why, when nobody asked for the end."""


def face(terminal: Terminal) -> Face:
    """The face that fits who is reading."""
    if terminal.json:
        return JsonFace(terminal)
    return PanelFace(terminal) if terminal.out.is_terminal else PlainFace(terminal)


class JsonFace:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._said: Problem | None = None

    def told(self, event: dict[str, Any], _snapshot: Snapshot, _wall: float) -> None:
        self._terminal.object(event)
        if event["event"] == "problem":
            self._said = Problem(event["title"], event["hint"])
            self._terminal.sentence(self._said)

    def look(self, _snapshot: Snapshot, _wall: float, _now: float) -> None:
        pass

    def close(self, totals: Totals, failure: Problem | None) -> None:
        if failure is not None and failure != self._said:
            self._terminal.problem(failure)
        self._terminal.object(left(totals))


class PanelFace:
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

    def told(self, _event: dict[str, Any], _snapshot: Snapshot, _wall: float) -> None:
        pass

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


class PlainFace:
    """One line for each thing that happens once, and a line of progress now and then."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._stage = ""
        self._said: Problem | None = None
        self._written: float | None = None

    def told(self, event: dict[str, Any], snapshot: Snapshot, _wall: float) -> None:
        match event["event"]:
            case "stage" if event["name"] != self._stage:
                self._stage = event["name"]
                self._terminal.write(f"{snapshot_view.stage_name(Stage(event['name']))} …")
            case "joined":
                self._terminal.write(
                    tr(
                        "Joined at epoch {epoch} on {device} as {peer_id}.",
                        epoch=event["epoch"],
                        device=event["device"],
                        peer_id=event["peer_id"],
                    )
                )
                if event["client_mode"]:
                    self._terminal.write(tr("This computer is behind a router: makes connections, accepts none."))
            case "paused":
                self._terminal.write(snapshot_view.reason(snapshot))
            case "problem":
                self._said = Problem(event["title"], event["hint"])
                self._terminal.sentence(self._said)
            case _:
                pass  # the line of progress tells the rest

    def look(self, snapshot: Snapshot, wall: float, now: float) -> None:
        if snapshot.progress is None or (self._written is not None and now - self._written < EVERY):
            return
        self._written = now
        waits = snapshot.leaving_until is not None
        self._terminal.write(snapshot_view.sentence(snapshot, wall) if waits else snapshot_view.update(snapshot))

    def close(self, totals: Totals, failure: Problem | None) -> None:
        if failure is not None and failure != self._said:
            self._terminal.sentence(failure)
        self._terminal.write(snapshot_view.farewell(totals))
