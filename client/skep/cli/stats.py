"""The verb `stats`: what this computer contributed, from the ledger; works while skep runs and when it does not."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skep import bootstrap
from skep.cli import words
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.model import Contribution, ContributionState
from skep.ports import Ledger


def add(verbs: Verbs) -> None:
    verbs.verb("stats", _stats, "show what this computer contributed, for each project and in all")


def _stats(context: Context, _arguments: argparse.Namespace) -> int:
    with bootstrap.ledger(context.home) as ledger:
        per_project = {project: _of(ledger, project) for project in ledger.projects()}
        whole = _of(ledger, None)
    lines = _lines(per_project, whole) if per_project else [_EMPTY]
    context.terminal.show({"projects": per_project, "all": whole}, lines)
    return 0


_EMPTY = "Nothing contributed yet. Join a project with skep join, and it will be listed here."


def _of(ledger: Ledger, project: str | None) -> dict[str, Any]:
    evaluations = ledger.evaluations(project) if project is not None else ()
    return {
        **asdict(ledger.totals(project)),
        "lost_reasons": lost_reasons(ledger.contributions(project)),
        **({"evaluations": [asdict(evaluation) for evaluation in evaluations]} if project is not None else {}),
    }


def lost_reasons(contributions: Sequence[Contribution]) -> dict[str, dict[str, int]]:
    """Why contributions were lost, with how many and how many samples; the most frequent reason first."""
    lost = [each for each in contributions if each.state is ContributionState.LOST]
    counted = Counter(each.reason for each in lost)
    samples: Counter[str] = Counter()
    for each in lost:
        samples[each.reason] += each.samples
    return {reason: {"contributions": count, "samples": samples[reason]} for reason, count in counted.most_common()}


def _lines(per_project: dict[str, dict[str, Any]], whole: dict[str, Any]) -> list[Any]:
    rows = [_row(name, body) for name, body in per_project.items()]
    if len(rows) > 1:
        rows.append(_row("All projects", whole))
    reasons = [
        f"Lost: {reason or 'no reason recorded'} ({words.plural(lost['contributions'], 'contribution')})"
        for reason, lost in whole["lost_reasons"].items()
    ]
    return [table(("Project", "Confirmed", "Pending", "Lost"), rows), *reasons]


def _row(name: str, body: dict[str, Any]) -> tuple[str, ...]:
    return (name, *(_cell(body[state]) for state in ("confirmed", "pending", "lost")))


def _cell(tally: dict[str, int]) -> str:
    return f"{words.number(tally['contributions'])} ({words.plural(tally['samples'], 'sample')})"
