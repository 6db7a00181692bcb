"""The verb `stats`: what this computer contributed, from the ledger; works while skep runs and when it does not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Any

from rich.table import Table

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.snapshot_view import samples
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import table
from skep.core.record.contributions import Tally
from skep.core.record.usage import Period, Unit
from skep.core.settings.hours import local
from skep.core.text import Text
from skep.language import units
from skep.ports import Ledger
from skep.services.summary import Summary, history, summary


def add(verbs: Verbs) -> None:
    made = verbs.verb("stats", _stats, tr("show what this computer contributed, for each project and in all"))
    made.add_argument("--by", choices=[str(unit) for unit in Unit], help=tr("also list the last hours, days or weeks"))


def _stats(context: Context, arguments: argparse.Namespace) -> int:
    now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
    unit = Unit(arguments.by) if arguments.by else None
    with bootstrap.ledger(context.home) as ledger:
        each = {project: summary(ledger, project) for project in ledger.projects()}
        whole = summary(ledger)
        body = {
            "projects": {name: _body(one) | _evaluations(ledger, name) for name, one in each.items()},
            "all": _body(whole),
        }
        past = history(ledger, unit, now, zone) if unit else ()
    if unit:
        body["by"] = {"unit": str(unit), "periods": [asdict(period) for period in past]}
    empty = tr("Nothing contributed yet. Join a project with skep join, and it will be listed here.")
    context.terminal.show(body, _lines(each, whole, past, zone) if each else [empty])
    return 0


def _body(one: Summary) -> dict[str, Any]:
    return {
        **asdict(one.totals),
        "lost_reasons": lost_reasons(one.lost),
        "seconds": {"staying": one.spent.staying, "training": one.spent.training, "computing": one.spent.computing},
        "energy": {"joules": one.spent.joules if one.spent.measured else None, "measured_seconds": one.spent.measured},
        "swarm": {"samples": one.proportion.samples, "of": one.proportion.swarm, "share": one.proportion.share},
    }


def _evaluations(ledger: Ledger, project: str) -> dict[str, Any]:
    return {"evaluations": [asdict(evaluation) for evaluation in ledger.evaluations(project)]}


def lost_reasons(lost: Mapping[Text, Tally]) -> dict[str, dict[str, int]]:
    """Why contributions were lost, with how many and how many samples; the most frequent reason first."""
    return {say(reason): asdict(tally) for reason, tally in lost.items()}


def _lines(each: Mapping[str, Summary], whole: Summary, past: Sequence[Period], zone: tzinfo) -> list[str | Table]:
    rows = [_row(name, one) for name, one in each.items()]
    if len(rows) > 1:
        rows.append(_row(tr("All projects"), whole))
    reasons = [
        tr(
            "Lost: {reason} ({count:number} contributions)",
            reason=say(reason) or tr("no reason recorded"),
            count=lost.contributions,
        )
        for reason, lost in whole.lost.items()
    ]
    heads = (
        tr("Project"), tr("Confirmed"), tr("Pending"), tr("Lost"), tr("Trained"), tr("Share of the swarm"), tr("Energy"),
    )  # fmt: skip
    energy = [] if whole.spent.measured else [tr("No energy: the device did not tell its power.")]
    told: list[str | Table] = [table(heads, rows), *reasons, *energy]
    return [*told, "", _past(past, zone)] if past else told


def _row(name: str, one: Summary) -> tuple[str, ...]:
    totals, spent = one.totals, one.spent
    cells = (_cell(tally) for tally in (totals.confirmed, totals.pending, totals.lost))
    share, energy = units.fine_percent(one.proportion.share), units.energy(spent.joules)
    measured = numbers().local(energy) if spent.measured else units.MISSING
    return (name, *cells, units.span(spent.training), numbers().local(share), measured)


def _cell(tally: Tally) -> str:
    return f"{units.number(tally.contributions)} ({samples(tally)})"


def _past(past: Sequence[Period], zone: tzinfo) -> Table:
    rows = [
        (
            _moment(local(period.begin, zone)),
            units.number(period.confirmed),
            units.number(period.lost),
            units.span(period.spent.training),
        )
        for period in past
    ]
    return table((tr("From"), tr("Confirmed"), tr("Lost"), tr("Trained")), rows)


def _moment(at: datetime) -> str:
    return f"{numbers().date(at)} {numbers().time(at)}"
