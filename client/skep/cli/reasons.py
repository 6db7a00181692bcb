"""The verbs that say why: `explain`, also what would happen if, and `timeline`, what happened on a day."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final

from skep import bootstrap
from skep.cli import words
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core import explain, timeline
from skep.core.control import finite
from skep.core.errors import BadInput, NotRunning
from skep.core.hours import local
from skep.core.model import Change

_DAYS_BACK: Final = {"today": 0, "yesterday": 1}


def add(verbs: Verbs) -> None:
    why = verbs.verb("explain", _explain, "say which rules hold now, or would if something happened")
    imagined = ", ".join(explain.WORDS)
    why.add_argument("--if", metavar="WHAT", dest="imagined", default="", help=f"one or more of {imagined}")
    day = verbs.verb("timeline", _timeline, "list what skep was allowed during a day, and why")
    day.add_argument("--day", metavar="DAY", default="today", help="today, yesterday, or a date such as 2026-03-01")


# --- explain


def _explain(context: Context, arguments: argparse.Namespace) -> int:
    asked = [word for word in arguments.imagined.split(",") if word.strip()]
    try:
        body = bootstrap.ask(context.home, {"verb": "explain", "if": asked})["explanation"]
        running = True
    except NotRunning:
        now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
        body = finite(explain.explained(bootstrap.look(context.home), asked, now, zone))
        running = False
    context.terminal.show({"running": running} | body, _reasons(body))
    return 0


def _reasons(body: dict[str, Any]) -> list[Any]:
    said = f"If {', '.join(body['if'])}: " if body["if"] else ""
    rows = [(each["label"], _granted(each["allowance"]), each["allowance"]["reason"]) for each in body["holding"]]
    lacking = [f"Not available here: {each['note']}" for each in body["missing"]]
    return [
        f"{said}{body['allowance']['reason']}",
        "",
        table(("Rule", "At most", "Why"), rows),
        *lacking,
        *body["remarks"],
    ]


def _granted(allowance: dict[str, Any]) -> str:
    return words.percent(allowance["share"]) + ("" if allowance["network"] else ", no network")


# --- timeline


def _timeline(context: Context, arguments: argparse.Namespace) -> int:
    now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
    begin, end = _bounds(arguments.day, now, zone)
    with bootstrap.ledger(context.home) as ledger:
        changes, reactions = ledger.changes(begin, end), ledger.reactions(timeline.KEPT)
    rows = entries(changes, begin, min(end, now))
    body = {
        "begin": begin,
        "end": end,
        "timeline": rows,
        "reactions": [asdict(each) for each in reactions],
        "reaction": timeline.sentence(reactions),
    }
    context.terminal.show(finite(body), _day(rows, timeline.sentence(reactions), zone))
    return 0


def _bounds(text: str, now: float, zone: tzinfo) -> tuple[float, float]:
    """The day's first moment and the next one's, in seconds since the epoch. Raises BadInput."""
    today = local(now, zone).date()
    try:
        back = _DAYS_BACK.get(text.lower())
        day = date.fromisoformat(text) if back is None else today - timedelta(days=back)
        midnight, next_one = (
            datetime(each.year, each.month, each.day, tzinfo=zone) for each in (day, day + timedelta(1))
        )
        return midnight.timestamp(), next_one.timestamp()
    except (ValueError, OverflowError, OSError):
        shown = "".join(character if character.isprintable() else "?" for character in text[:40])
        raise BadInput(f"“{shown}” is no day.", "Write today, yesterday or a date such as 2026-03-01.") from None


def entries(changes: Sequence[Change], begin: float, end: float) -> list[dict[str, Any]]:
    """Changes as JSON, each until the next one, cut to the span from `begin` to `end`."""
    ends = [*(change.at for change in changes[1:]), end]
    spans = ((change, max(begin, change.at), until) for change, until in zip(changes, ends, strict=False))
    return [
        asdict(change) | {"begin": since, "end": max(since, until)} for change, since, until in spans if until > begin
    ]


def _day(rows: list[dict[str, Any]], reaction: str, zone: tzinfo) -> list[Any]:
    if not rows:
        return ["Nothing happened that day."]
    lines = [
        (f"{local(row['begin'], zone):%H:%M:%S}", words.span(row["end"] - row["begin"]), _share(row), row["reason"])
        for row in rows
    ]
    return [table(("From", "For", "Share", "Why"), lines), *([reaction] if reaction else [])]


def _share(row: dict[str, Any]) -> str:
    return words.percent(row["share"]) if row["project"] else words.MISSING
