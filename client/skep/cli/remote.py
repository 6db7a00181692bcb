"""The verbs that act on the skep that runs in this home: `status`, `pause`, `resume`, `share` and `leave`."""

from __future__ import annotations

import argparse
from typing import Any

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli import goodbye, present, words
from skep.cli.parser import Context, Verbs
from skep.core import settings as declared
from skep.core.control import snapshot_of

SHARE = "compute.share_away"


def add(verbs: Verbs) -> None:
    verbs.verb("status", _status, "show what the running skep does, and why")
    pause = verbs.verb("pause", _pause, "stop computing until skep resume, or for a while")
    pause.add_argument("--for", metavar="TIME", dest="span", type=spelled.seconds, help="such as 15m or 1h")
    verbs.verb("resume", _resume, "end a pause")
    share = verbs.verb("share", _share, "set the compute share of the running skep, and remember it")
    share.add_argument("percent", metavar="PERCENT", type=spelled.share, help="5 to 100")
    leave = verbs.verb("leave", _leave, "let the running skep leave the swarm after the next round")
    leave.description = f"{leave.description} It waits up to a minute for the round; Ctrl-C then leaves at once."
    leave.add_argument("--now", action="store_true", help="leave at once; what was not averaged is lost")


def _status(context: Context, _arguments: argparse.Namespace) -> int:
    status = bootstrap.ask(context.home, {"verb": "status"})["status"]
    snapshot, now = snapshot_of(status), bootstrap.clock().wall()
    lines = present.panel(snapshot, now, context.terminal.out.width)
    context.terminal.show({"running": True} | status, lines)
    return 0


def _pause(context: Context, arguments: argparse.Namespace) -> int:
    now = bootstrap.clock().wall()
    until = None if arguments.span is None else now + arguments.span
    bootstrap.ask(context.home, {"verb": "pause", "until": until})
    words_until = "you resume" if until is None else words.clock_time(until, now)
    return _done(context, {"paused": True, "until": until}, f"Paused until {words_until}.")


def _resume(context: Context, _arguments: argparse.Namespace) -> int:
    bootstrap.ask(context.home, {"verb": "resume"})
    return _done(context, {"paused": False}, "Resumed.")


def _share(context: Context, arguments: argparse.Namespace) -> int:
    declared.check(SHARE, arguments.percent)
    bootstrap.ask(context.home, {"verb": "settings", "values": {SHARE: arguments.percent}})
    return _done(context, {"share": arguments.percent}, f"The share is {words.percent(arguments.percent)} now.")


def _leave(context: Context, arguments: argparse.Namespace) -> int:
    goodbye.leave(context, now=arguments.now)
    return _done(context, {"left": True}, "Left the swarm.")


def _done(context: Context, body: dict[str, Any], sentence: str) -> int:
    context.terminal.show(body, [sentence])
    return 0
