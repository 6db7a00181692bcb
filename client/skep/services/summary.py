"""Summaries of the ledger for one project or all, shared by the terminal and the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from skep.core.record.contributions import Tally, Totals
from skep.core.record.usage import Period, Proportion, Spent, Unit, periods, spans
from skep.core.text import Text
from skep.ports import Ledger


@dataclass(frozen=True)
class Summary:
    """Samples by state, reasons for lost ones, the usage, and this computer's part of the swarm's samples."""

    totals: Totals = field(default_factory=Totals)
    lost: Mapping[Text, Tally] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    proportion: Proportion = field(default_factory=Proportion)


def summary(ledger: Ledger, project: str | None = None) -> Summary:
    """The summary of one project, or of all. Raises StorageError."""
    return Summary(
        ledger.totals(project), ledger.lost_reasons(project), ledger.spent(project), ledger.proportion(project)
    )


def history(ledger: Ledger, unit: Unit, now: float, zone: tzinfo) -> Sequence[Period]:
    """The last hours, days or weeks with the usage and samples of each, over all projects. Raises StorageError."""
    asked = spans(unit, now, zone)
    begin, end = asked[0][0], asked[-1][1]
    return periods(asked, ledger.usage(begin, end), ledger.earned(begin, end))
