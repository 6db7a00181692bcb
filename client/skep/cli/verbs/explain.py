"""The verbs that say why: `explain`, also what would happen if, and `timeline`, what happened on a day."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import say, tr, worded
from skep.cli.show.terminal import table
from skep.core.errors import BadInput, NotRunning
from skep.core.policy.allowance import Change
from skep.core.session import explain, timeline
from skep.core.session.control import finite
from skep.core.settings.hours import local
from skep.core.text import Text
from skep.language import units

_DAYS_BACK: Final = {"today": 0, "yesterday": 1}


def add(verbs: Verbs) -> None:
    why = verbs.verb("explain", _explain, tr("say which rules hold now, or would if something happened"))
    imagined = tr("one or more of {words}", words=tuple(explain.WORDS))
    why.add_argument("--if", metavar=tr("WHAT"), dest="imagined", default="", help=imagined)
    day = verbs.verb("timeline", _timeline, tr("list what skep was allowed during a day, and why"))
    day.add_argument(
        "--day", metavar=tr("DAY"), default="today", help=tr("today, yesterday, or a date such as 2026-03-01")
    )


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
    context.terminal.show({"running": running} | body, _reasons(worded(body)))
    return 0


def _reasons(body: dict[str, Any]) -> list[Any]:
    said = body["allowance"]["reason"]
    if body["if"]:
        said = tr("If {words}: {said}", words=tuple(body["if"]), said=said)
    rows = [(each["label"], _granted(each["allowance"]), each["allowance"]["reason"]) for each in body["holding"]]
    lacking = [tr("Not available here: {why}", why=each["note"]) for each in body["missing"]]
    return [
        said,
        "",
        table((tr("Rule"), tr("At most"), tr("Why")), rows),
        *lacking,
        *body["remarks"],
    ]


def _granted(allowance: dict[str, Any]) -> str:
    share = units.percent(allowance["share"])
    return share if allowance["network"] else tr("{share}, no network", share=share)


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
    context.terminal.show(finite(body), _day(worded(rows), say(timeline.sentence(reactions)), zone))
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
        raise BadInput(Text("explain.no_day", shown=shown), Text("explain.write_today_yesterday_date_such")) from None


def entries(changes: Sequence[Change], begin: float, end: float) -> list[dict[str, Any]]:
    """Changes as JSON, each until the next one, cut to the span from `begin` to `end`."""
    ends = [*(change.at for change in changes[1:]), end]
    spans = ((change, max(begin, change.at), until) for change, until in zip(changes, ends, strict=False))
    return [
        asdict(change) | {"begin": since, "end": max(since, until)} for change, since, until in spans if until > begin
    ]


def _day(rows: list[dict[str, Any]], reaction: str, zone: tzinfo) -> list[Any]:
    if not rows:
        return [tr("Nothing happened that day.")]
    lines = [
        (f"{local(row['begin'], zone):%H:%M:%S}", units.span(row["end"] - row["begin"]), _share(row), row["reason"])
        for row in rows
    ]
    return [table((tr("From"), tr("For"), tr("Share"), tr("Why")), lines), *([reaction] if reaction else [])]


def _share(row: dict[str, Any]) -> str:
    return units.percent(row["share"]) if row["project"] else units.MISSING
