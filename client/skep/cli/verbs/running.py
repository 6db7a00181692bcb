"""The verbs that act on the skep that runs in this home: `status`, `pause`, `resume`, `share` and `leave`."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from typing import Any, Final

from rich.live import Live
from rich.text import Text as Styled

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show import snapshot_view
from skep.cli.show.speech import numbers, tr
from skep.core.errors import NotRunning, SkepError
from skep.core.session.control import snapshot_of
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings import settings as declared
from skep.core.text import Text
from skep.language import units

LOOK: Final = 0.25
"""Seconds between two questions."""
OBEYED_WITHIN: Final = 10.0
"""Seconds after which a running skep that was told to leave must be leaving."""


def leave(context: Context, *, now: bool) -> None:
    """Let the running skep leave, and return when it has left; Ctrl-C leaves at once. Raises SkepError."""
    with Interrupts() as interrupts:
        _ask(context, now=now)
        with ExitStack() as stack:
            show = _Countdown(context, stack)
            wait = _Wait(time.monotonic())
            while not wait.is_over(snapshot := _look(context), time.monotonic()):
                if interrupts.asked and not now:
                    now = True
                    _ask(context, now=True)
                show(snapshot)
                time.sleep(LOOK)


def _ask(context: Context, *, now: bool) -> None:
    bootstrap.ask(context.home, {"verb": "leave", "now": now})


def _look(context: Context) -> Snapshot | None:
    """What the running skep shows; None when it has ended."""
    try:
        return snapshot_of(bootstrap.ask(context.home, {"verb": "status"})["status"])
    except NotRunning:
        return None


class _Wait:
    """Whether a leave that was asked for is over, from one answer to the next."""

    def __init__(self, asked_at: float) -> None:
        self._asked_at, self._leaving = asked_at, False

    def is_over(self, snapshot: Snapshot | None, now: float) -> bool:
        """`now` is monotonic seconds. Raises SkepError when the running skep does not obey."""
        if snapshot is None or snapshot.phase is Phase.IDLE:
            return True
        leaving = snapshot.phase is Phase.LEAVING
        if self._leaving and not leaving:
            return True  # it has left, and joined anew
        self._leaving = leaving
        if not leaving and now - self._asked_at > OBEYED_WITHIN:
            raise SkepError(Text("running.running_skep_does_not_leave"), Text("running.look_terminal_end_there_ctrl"))
        return False


class _Countdown:
    """One line: redrawn on a terminal, said once anywhere else, and left out for programs."""

    def __init__(self, context: Context, stack: ExitStack) -> None:
        self._terminal = context.terminal
        self._said = context.terminal.json
        self._live: Live | None = None
        if self._terminal.out.is_terminal and not self._said:
            self._live = stack.enter_context(Live(console=self._terminal.out, auto_refresh=False, transient=True))

    def __call__(self, snapshot: Snapshot | None) -> None:
        if snapshot is None or snapshot.leaving_until is None:
            return
        line = snapshot_view.sentence(snapshot, bootstrap.clock().wall())
        if self._live is not None:
            self._live.update(Styled(line), refresh=True)
        elif not self._said:
            self._terminal.write(line)
            self._said = True


SHARE = "compute.share_away"


def add(verbs: Verbs) -> None:
    verbs.verb("status", _status, tr("show what the running skep does, and why"))
    pause = verbs.verb("pause", _pause, tr("stop computing until skep resume, or for a while"))
    pause.add_argument("--for", metavar=tr("TIME"), dest="span", type=spelled.seconds, help=tr("such as 15m or 1h"))
    verbs.verb("resume", _resume, tr("end a pause"))
    share = verbs.verb("share", _share, tr("set the compute share of the running skep, and remember it"))
    share.add_argument("percent", metavar=tr("PERCENT"), type=spelled.share, help=tr("5 to 100"))
    leave = verbs.verb("leave", _leave, tr("let the running skep leave the swarm after the next round"))
    more = tr("It waits up to a minute for the round; Ctrl-C then leaves at once.")
    leave.description = f"{leave.description} {more}"
    leave.add_argument("--now", action="store_true", help=tr("leave at once; what was not averaged is lost"))


def _status(context: Context, _arguments: argparse.Namespace) -> int:
    status = bootstrap.ask(context.home, {"verb": "status"})["status"]
    snapshot, now = snapshot_of(status), bootstrap.clock().wall()
    lines = snapshot_view.panel(snapshot, now, context.terminal.out.width)
    context.terminal.show({"running": True} | status, lines)
    return 0


def _pause(context: Context, arguments: argparse.Namespace) -> int:
    now = bootstrap.clock().wall()
    until = None if arguments.span is None else now + arguments.span
    bootstrap.ask(context.home, {"verb": "pause", "until": until})
    if until is None:
        words = tr("Paused until you resume.")
    else:
        words = tr("Paused until {time}.", time=numbers().clock_time(until, now))
    return _done(context, {"paused": True, "until": until}, words)


def _resume(context: Context, _arguments: argparse.Namespace) -> int:
    bootstrap.ask(context.home, {"verb": "resume"})
    return _done(context, {"paused": False}, tr("Resumed."))


def _share(context: Context, arguments: argparse.Namespace) -> int:
    declared.check(SHARE, arguments.percent)
    bootstrap.ask(context.home, {"verb": "settings", "values": {SHARE: arguments.percent}})
    words = tr("The share is {share} now.", share=units.percent(arguments.percent))
    return _done(context, {"share": arguments.percent}, words)


def _leave(context: Context, arguments: argparse.Namespace) -> int:
    leave(context, now=arguments.now)
    return _done(context, {"left": True}, tr("Left the swarm."))


def _done(context: Context, body: dict[str, Any], sentence: str) -> int:
    context.terminal.show(body, [sentence])
    return 0
