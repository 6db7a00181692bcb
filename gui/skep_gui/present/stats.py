"""What this computer contributed, as rows; and the same as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skep.cli import words
from skep.core.model import Contribution, ContributionState, Tally, Totals
from skep_gui.present.speaker import Speaker

CSV_COLUMNS = ("project", "contribution", "epoch", "samples", "state", "peers", "reason")


@dataclass(frozen=True)
class Record:
    """The ledger as it was read: all contributions by project, oldest first."""

    contributions: Mapping[str, Sequence[Contribution]] = field(default_factory=dict)

    def totals(self, project: str | None = None) -> Totals:
        chosen = [each for name, rows in self.contributions.items() if project in (None, name) for each in rows]
        return Totals(**{str(state): _tally(chosen, state) for state in ContributionState})


def _tally(rows: Sequence[Contribution], state: ContributionState) -> Tally:
    samples = [each.samples for each in rows if each.state is state]
    return Tally(len(samples), sum(samples))


@dataclass(frozen=True)
class StatsRow:
    project: str
    confirmed: str
    pending: str
    lost: str
    share: str
    """The confirmed part of what is settled."""


@dataclass(frozen=True)
class Reason:
    text: str
    contributions: int
    samples: int


class Stats(Speaker):
    def is_empty(self, record: Record) -> bool:
        return not any(record.contributions.values())

    def row(self, name: str, totals: Totals) -> StatsRow:
        return StatsRow(
            name,
            self.cell(totals.confirmed),
            self.cell(totals.pending),
            self.cell(totals.lost),
            words.percent(confirmed_part(totals)),
        )

    def rows(self, record: Record, titles: Mapping[str, str]) -> list[StatsRow]:
        """One a project, by its title where it is known; and all together where there are several."""
        rows = [self.row(titles.get(name, name), record.totals(name)) for name in record.contributions]
        return [*rows, self.row(self.tr("All projects"), record.totals())] if len(rows) > 1 else rows

    def cell(self, tally: Tally) -> str:
        epochs = self.tr("1 epoch") if tally.contributions == 1 else self.tr("%1 epochs")
        return f"{words.number(tally.samples)} ({epochs.replace('%1', words.number(tally.contributions))})"

    def reasons(self, record: Record) -> list[Reason]:
        """Why contributions were lost, the most frequent first."""
        counts: Counter[str] = Counter()
        samples: Counter[str] = Counter()
        for rows in record.contributions.values():
            for each in rows:
                if each.state is ContributionState.LOST:
                    counts[each.reason] += 1
                    samples[each.reason] += each.samples
        return [
            Reason(self.said(reason) or self.tr("no reason recorded"), count, samples[reason])
            for reason, count in counts.most_common()
        ]

    def reason_line(self, reason: Reason) -> str:
        return (
            self.tr("%1: %2 samples in %3")
            .replace("%1", _capital(reason.text))
            .replace("%2", words.number(reason.samples))
            .replace("%3", self._epochs(reason.contributions))
        )

    def _epochs(self, count: int) -> str:
        return self.tr("1 epoch") if count == 1 else self.tr("%1 epochs").replace("%1", words.number(count))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def confirmed_part(totals: Totals) -> float | None:
    """0..1 of the settled samples; None while none is settled."""
    settled = totals.confirmed.samples + totals.lost.samples
    return totals.confirmed.samples / settled if settled else None


def to_csv(record: Record) -> str:
    """Every contribution as a row. A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for project, rows in record.contributions.items():
        for each in rows:
            row = (project, each.id, each.epoch, each.samples, str(each.state), each.peers, each.reason)
            writer.writerow([_harmless(value) for value in row])
    return out.getvalue()


def _harmless(value: str | int) -> str | int:
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
