"""The verb `stats`: what this computer contributed, from the ledger; works while skep runs and when it does not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import Any

from rich.table import Table

from skep import bootstrap
from skep.cli import words
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.hours import local
from skep.core.model import Tally
from skep.core.periods import Period, Unit
from skep.ports import Ledger
from skep.summary import Summary, history, summary

_NO_ENERGY = "the device did not tell its power"


def add(verbs: Verbs) -> None:
    made = verbs.verb("stats", _stats, "show what this computer contributed, for each project and in all")
    made.add_argument("--by", choices=[str(unit) for unit in Unit], help="also list the last hours, days or weeks")


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
    context.terminal.show(body, _lines(each, whole, past, zone) if each else [_EMPTY])
    return 0


_EMPTY = "Nothing contributed yet. Join a project with skep join, and it will be listed here."


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


def lost_reasons(lost: Mapping[str, Tally]) -> dict[str, dict[str, int]]:
    """Why contributions were lost, with how many and how many samples; the most frequent reason first."""
    return {reason: asdict(tally) for reason, tally in lost.items()}


def _lines(each: Mapping[str, Summary], whole: Summary, past: Sequence[Period], zone: tzinfo) -> list[str | Table]:
    rows = [_row(name, one) for name, one in each.items()]
    if len(rows) > 1:
        rows.append(_row("All projects", whole))
    reasons = [
        f"Lost: {reason or 'no reason recorded'} ({words.plural(lost.contributions, 'contribution')})"
        for reason, lost in whole.lost.items()
    ]
    heads = ("Project", "Confirmed", "Pending", "Lost", "Trained", "Share of the swarm", "Energy")
    energy = [] if whole.spent.measured else [f"No energy: {_NO_ENERGY}."]
    told: list[str | Table] = [table(heads, rows), *reasons, *energy]
    return [*told, "", _past(past, zone)] if past else told


def _row(name: str, one: Summary) -> tuple[str, ...]:
    totals, spent = one.totals, one.spent
    cells = (_cell(tally) for tally in (totals.confirmed, totals.pending, totals.lost))
    energy = words.energy(spent.joules) if spent.measured else words.MISSING
    return (name, *cells, words.span(spent.training), words.fine_percent(one.proportion.share), energy)


def _cell(tally: Tally) -> str:
    return f"{words.number(tally.contributions)} ({words.plural(tally.samples, 'sample')})"


def _past(past: Sequence[Period], zone: tzinfo) -> Table:
    rows = [
        (
            f"{local(period.begin, zone):%Y-%m-%d %H:%M}",
            words.number(period.confirmed),
            words.number(period.lost),
            words.span(period.spent.training),
        )
        for period in past
    ]
    return table(("From", "Confirmed", "Lost", "Trained"), rows)
