"""What the ledger refused, and what came while it did, kept until it accepts rows: a full disk costs nothing that was earned."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from skep import ports
from skep.core.record.contributions import ContributionState
from skep.core.session import effects as e

UNTRIED_SECONDS: Final = 1.0
"""After a refusal rows are kept without a try for so long: each try may take the ledger's patience, and the give-back of the
computer waits meanwhile."""
LAST_SECONDS: Final = 3.0
"""How long it is tried again when the engine ends."""
LAST_PAUSE_SECONDS: Final = 0.1

log = logging.getLogger(__name__)
Row = e.Record | e.SavePosition | e.SaveEvaluation | e.RecordChange | e.RecordReaction | e.RecordUsage


class Unwritten:
    """`clock` is in monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows: list[Row] = []
        self._clock = clock
        self._refused = float("-inf")

    def write(self, ledger: ports.Ledger, row: Row) -> None:
        """Write the row, or keep it for later: after a refusal without a try, else raising the ledger's error."""
        refused_now = bool(self._rows) and self._clock() - self._refused < UNTRIED_SECONDS
        self._rows = [each for each in self._rows if not _replaces(row, each)]
        if refused_now:
            self._keep(row)
            return
        try:
            _write(ledger, row)
        except Exception:
            self._refused = self._clock()
            self._keep(row)
            raise

    def catch_up(self, ledger: ports.Ledger) -> None:
        """Write what was kept. Raises the ledger's first error; the next call begins with another row."""
        while self._rows:
            row = self._rows.pop(0)
            try:
                _write(ledger, row)
            except Exception:
                self._rows.append(row)
                raise

    def write_the_rest(self, ledger: ports.Ledger) -> None:
        """Write what is kept before this process ends; another program may hold the ledger for a moment only."""
        until = self._clock() + LAST_SECONDS
        while self._rows:
            try:
                self.catch_up(ledger)
            except Exception:  # whatever it is, the process ends
                if self._clock() > until:
                    log.exception("what is left cannot be recorded")
                    return
                time.sleep(LAST_PAUSE_SECONDS)  # a full disk refuses immediately

    def settled(self) -> Iterable[str]:
        """Ids of the contributions that are kept as confirmed or lost."""
        records = [row.contribution for row in self._rows if isinstance(row, e.Record)]
        return [each.id for each in records if each.state is not ContributionState.PENDING]

    def _keep(self, row: Row) -> None:
        if isinstance(row, e.RecordUsage):
            for place, each in enumerate(self._rows):
                if isinstance(each, e.RecordUsage) and _same_quarter(each, row):
                    both = replace(row.quarter, spent=each.quarter.spent.plus(row.quarter.spent))
                    self._rows[place] = e.RecordUsage(both)
                    return
        self._rows.append(row)


def _replaces(new: Row, old: Row) -> bool:
    if isinstance(new, e.Record) and isinstance(old, e.Record):
        return new.contribution.id == old.contribution.id
    return isinstance(new, e.SavePosition) and isinstance(old, e.SavePosition) and new.project_id == old.project_id


def _same_quarter(one: e.RecordUsage, other: e.RecordUsage) -> bool:
    return (one.quarter.project, one.quarter.begin) == (other.quarter.project, other.quarter.begin)


def _write(ledger: ports.Ledger, row: Row) -> None:
    match row:
        case e.Record(project_id=project_id, contribution=contribution):
            ledger.record(project_id, contribution)
        case e.SavePosition(project_id=project_id, position=position):
            ledger.save_position(project_id, position)
        case e.SaveEvaluation(project_id=project_id, evaluation=evaluation):
            ledger.save_evaluation(project_id, evaluation)
        case e.RecordChange(change=change):
            ledger.record_change(change)
        case e.RecordReaction(reaction=reaction):
            ledger.record_reaction(reaction)
        case e.RecordUsage(quarter=quarter):
            ledger.add_usage(quarter)
