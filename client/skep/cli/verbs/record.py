"""The verbs that read the ledger: `timeline`, what happened on a day, and `stats`, what this computer contributed.

They work whether skep runs or not.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, tzinfo
from typing import Any, Final

from rich.table import Table

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.snapshot_view import samples
from skep.cli.show.speech import numbers, say, tr, worded
from skep.cli.show.terminal import table
from skep.core.errors import BadInput
from skep.core.policy.allowance import Change
from skep.core.record.timeline_segments import spans
from skep.core.record.usage import Period, Unit, day_of
from skep.core.session import timeline
from skep.core.settings.hours import local
from skep.core.text import Text
from skep.language import units
from skep.services.summary import Summary, history, summary

_DAYS_BACK: Final = {"today": 0, "yesterday": 1}


def add(verbs: Verbs) -> None:
    day = verbs.verb("timeline", _timeline, tr("list what skep was allowed during a day, and why"))
    day.add_argument(
        "--day", metavar=tr("DAY"), default="today", help=tr("today, yesterday, or a date such as 2026-03-01")
    )
    made = verbs.verb("stats", _stats, tr("show what this computer contributed, for each project and in all"))
    made.add_argument("--by", choices=[str(unit) for unit in Unit], help=tr("also list the last hours, days or weeks"))


# --- timeline


def _timeline(context: Context, arguments: argparse.Namespace) -> None:
    now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
    begin, end = _day_named(arguments.day, now, zone)
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
    context.terminal.show(body, _day(worded(rows), say(timeline.sentence(reactions)), zone))


def _day_named(text: str, now: float, zone: tzinfo) -> tuple[float, float]:
    """The start and end of the day, in seconds since the epoch. Raises BadInput."""
    try:
        back = _DAYS_BACK.get(text.lower())
        if back is None:
            back = (local(now, zone).date() - date.fromisoformat(text)).days
        return day_of(now, zone, back)
    except (ValueError, OverflowError, OSError):
        shown = "".join(character if character.isprintable() else "?" for character in text[:40])
        raise BadInput(Text("explain.no_day", shown=shown), Text("explain.write_today_yesterday_date_such")) from None


def entries(changes: Sequence[Change], begin: float, end: float) -> list[dict[str, Any]]:
    """Changes as JSON, each until the next one, cut to the span from `begin` to `end`."""
    return [
        asdict(change) | {"begin": since, "end": max(since, until)}
        for change, since, until in spans(changes, begin, end)
        if until > begin
    ]


def _day(rows: list[dict[str, Any]], reaction: str, zone: tzinfo) -> list[Any]:
    if not rows:
        return [tr("Nothing happened that day.")]
    lines = [
        (
            f"{local(row['begin'], zone):%H:%M:%S}",
            units.span(row["end"] - row["begin"]),
            units.percent(row["share"]) if row["project"] else units.MISSING,
            row["reason"],
        )
        for row in rows
    ]
    return [table((tr("From"), tr("For"), tr("Share"), tr("Why")), lines), *([reaction] if reaction else [])]


# --- stats


def _stats(context: Context, arguments: argparse.Namespace) -> None:
    now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
    unit = Unit(arguments.by) if arguments.by else None
    with bootstrap.ledger(context.home) as ledger:
        each = {project: summary(ledger, project) for project in ledger.projects()}
        whole = summary(ledger)
        evaluations = {name: [asdict(evaluation) for evaluation in ledger.evaluations(name)] for name in each}
        past = history(ledger, unit, now, zone) if unit else ()
    projects = {name: _body(one) | {"evaluations": evaluations[name]} for name, one in each.items()}
    body: dict[str, Any] = {"projects": projects, "all": _body(whole)}
    if unit:
        body["by"] = {"unit": str(unit), "periods": [asdict(period) for period in past]}
    empty = tr("Nothing contributed yet. Join a project with skep join, and it will be listed here.")
    context.terminal.show(body, _lines(each, whole, past, zone) if each else [empty])


def _body(one: Summary) -> dict[str, Any]:
    return {
        **asdict(one.totals),
        "lost_reasons": {say(reason): asdict(tally) for reason, tally in one.lost.items()},
        "seconds": {"staying": one.spent.staying, "training": one.spent.training, "computing": one.spent.computing},
        "energy": {"joules": one.spent.joules if one.spent.measured else None, "measured_seconds": one.spent.measured},
        "swarm": {"samples": one.proportion.samples, "of": one.proportion.swarm, "share": one.proportion.share},
    }


def _lines(each: Mapping[str, Summary], whole: Summary, past: Sequence[Period], zone: tzinfo) -> list[str | Table]:
    rows = [_row(name, one) for name, one in each.items()]
    if len(rows) > 1:
        rows.append(_row(tr("All projects"), whole))
    reasons = [
        tr("Lost: {reason} ({count:number} contributions)", reason=said or tr("no reason recorded"), count=count)
        for said, count in ((say(reason), lost.contributions) for reason, lost in whole.lost.items())
    ]
    heads = (
        tr("Project"), tr("Confirmed"), tr("Pending"), tr("Lost"), tr("Trained"), tr("Share of the swarm"), tr("Energy"),
    )  # fmt: skip
    energy = [] if whole.spent.measured else [tr("No energy: the device did not report its power.")]
    told: list[str | Table] = [table(heads, rows), *reasons, *energy]
    return [*told, "", _past(past, zone)] if past else told


def _row(name: str, one: Summary) -> tuple[str, ...]:
    totals, spent = one.totals, one.spent
    counted = (totals.confirmed, totals.pending, totals.lost)
    cells = (f"{units.number(tally.contributions)} ({samples(tally)})" for tally in counted)
    share, energy = units.fine_percent(one.proportion.share), units.energy(spent.joules)
    measured = numbers().local(energy) if spent.measured else units.MISSING
    return (name, *cells, units.span(spent.training), numbers().local(share), measured)


def _past(past: Sequence[Period], zone: tzinfo) -> Table:
    rows = [
        (
            _moment(local(each.begin, zone)),
            units.number(each.confirmed),
            units.number(each.lost),
            units.span(each.spent.training),
        )
        for each in past
    ]
    return table((tr("From"), tr("Confirmed"), tr("Lost"), tr("Trained")), rows)


def _moment(at: datetime) -> str:
    return f"{numbers().date(at)} {numbers().time(at)}"
