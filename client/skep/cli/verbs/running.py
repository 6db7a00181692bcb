"""The verbs about the skep that runs in this home: `status`, `pause`, `resume`, `share`, `leave` and `explain`."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from typing import Any, Final

from rich.live import Live
from rich.text import Text as Styled

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show import snapshot_view
from skep.cli.show.speech import numbers, say, tr, worded
from skep.cli.show.terminal import Terminal, table
from skep.core.errors import NotRunning, SkepError
from skep.core.policy import rules
from skep.core.session import explain
from skep.core.session.control import snapshot_of
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings import settings as declared
from skep.core.text import Text
from skep.language import units

SHARE: Final = "compute.share_away"
LOOK: Final = 0.25
"""Seconds between two questions."""
OBEYED_WITHIN: Final = 10.0
"""Seconds after which a running skep that was told to leave must be leaving."""


def snapshot_here(context: Context) -> Snapshot | None:
    """What the running skep shows; None where none runs."""
    try:
        return snapshot_of(bootstrap.ask(context.home, {"verb": "status"})["status"])
    except NotRunning:
        return None


def leave(context: Context, *, now: bool) -> None:
    """Let the running skep leave, and return when it has left; Ctrl-C leaves immediately. Raises SkepError."""
    show, leaving, heard = _Countdown(context.terminal), False, 0
    with Interrupts() as interrupts, show.live or nullcontext():
        bootstrap.ask(context.home, {"verb": "leave", "now": now})
        asked_at = time.monotonic()
        while (snapshot := snapshot_here(context)) is not None and snapshot.phase is not Phase.IDLE:
            if leaving and snapshot.phase is not Phase.LEAVING:
                return  # it has left, and joined anew
            leaving = snapshot.phase is Phase.LEAVING
            if not leaving and time.monotonic() - asked_at > OBEYED_WITHIN:
                raise SkepError(
                    Text("running.running_skep_does_not_leave"), Text("running.look_terminal_end_there_ctrl")
                )
            if interrupts.count > heard and (not now or snapshot.saving):
                now, heard = True, interrupts.count
                bootstrap.ask(context.home, {"verb": "leave", "now": now})
            show(snapshot)
            time.sleep(LOOK)


class _Countdown:
    """One line: redrawn on a terminal, said once anywhere else, and left out for programs."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._said = terminal, terminal.json
        redraws = terminal.out.is_terminal and not terminal.json
        self.live = Live(console=terminal.out, auto_refresh=False, transient=True) if redraws else None

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.leaving_until is None:
            return
        line = snapshot_view.sentence(snapshot, bootstrap.clock().wall())
        if self.live is not None:
            self.live.update(Styled(line), refresh=True)
        elif not self._said:
            self._terminal.write(line)
            self._said = True


def add(verbs: Verbs) -> None:
    verbs.verb("status", _status, tr("show what the running skep does, and why"))
    pause = verbs.verb("pause", _pause, tr("stop computing until skep resume, or for a while"))
    pause.add_argument("--for", metavar=tr("TIME"), dest="span", type=spelled.seconds, help=tr("such as 15m or 1h"))
    verbs.verb("resume", _resume, tr("end a pause"))
    share = verbs.verb("share", _share, tr("set the compute share of the running skep, and remember it"))
    share.add_argument("percent", metavar=tr("PERCENT"), type=spelled.share, help=tr("5 to 100"))
    more = tr("It waits for the round; Ctrl-C leaves without waiting.")
    leave = verbs.verb("leave", _leave, tr("let the running skep leave the swarm after the next round"), more)
    leave.add_argument("--now", action="store_true", help=tr("leave now; what was not averaged is lost"))
    why = verbs.verb("explain", _explain, tr("list the rules that apply now, or would apply in another situation"))
    imagined = tr("one or more of {words}", words=tuple(explain.WORDS))
    why.add_argument("--if", metavar=tr("WHAT"), dest="imagined", default="", help=imagined)


def _status(context: Context, _arguments: argparse.Namespace) -> None:
    status = bootstrap.ask(context.home, {"verb": "status"})["status"]
    snapshot, now = snapshot_of(status), bootstrap.clock().wall()
    lines = snapshot_view.panel(snapshot, now, context.terminal.out.width)
    context.terminal.show({"running": True} | status, lines)


def _pause(context: Context, arguments: argparse.Namespace) -> None:
    now = bootstrap.clock().wall()
    until = None if arguments.span is None else now + arguments.span
    bootstrap.ask(context.home, {"verb": "pause", "until": until})
    words = rules.paused("" if until is None else numbers().clock_time(until, now))
    context.terminal.show({"paused": True, "until": until}, [say(words)])


def _resume(context: Context, _arguments: argparse.Namespace) -> None:
    bootstrap.ask(context.home, {"verb": "resume"})
    context.terminal.show({"paused": False}, [tr("Resumed.")])


def _share(context: Context, arguments: argparse.Namespace) -> None:
    share = arguments.percent
    declared.check(SHARE, share)
    bootstrap.ask(context.home, {"verb": "settings", "values": {SHARE: share}})
    context.terminal.show({"share": share}, [tr("The share is {share} now.", share=units.percent(share))])


def _leave(context: Context, arguments: argparse.Namespace) -> None:
    leave(context, now=arguments.now)
    context.terminal.show({"left": True}, [tr("Left the swarm.")])


# --- explain


def _explain(context: Context, arguments: argparse.Namespace) -> None:
    asked = [word for word in arguments.imagined.split(",") if word.strip()]
    try:
        body = bootstrap.ask(context.home, {"verb": "explain", "if": asked})["explanation"]
        running = True
    except NotRunning:
        now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
        body = explain.explained(bootstrap.look(context.home), asked, now, zone)
        running = False
    context.terminal.show({"running": running} | body, _reasons(worded(body)))


def _reasons(body: dict[str, Any]) -> list[Any]:
    said = body["allowance"]["reason"]
    if body["if"]:
        said = tr("If {words}: {said}", words=tuple(body["if"]), said=said)
    rows = [(each["label"], _granted(each["allowance"]), each["allowance"]["reason"]) for each in body["holding"]]
    lacking = [tr("Not available here: {why}", why=each["note"]) for each in body["missing"]]
    return [said, "", table((tr("Rule"), tr("At most"), tr("Why")), rows), *lacking, *body["remarks"]]


def _granted(allowance: dict[str, Any]) -> str:
    share = units.percent(allowance["share"])
    return share if allowance["network"] else tr("{share}, no network", share=share)
