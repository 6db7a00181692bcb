"""Counts what a stay in a project costs this computer: time, and energy where the device tells its power. Pure.

Seconds are those of the policy's steady time, which neither sleep nor a clock put right can swell. What was spent is
handed to the ledger about once a minute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skep.core.policy.conditions import Condition
from skep.core.record.usage import Meter, Quarter, Spent, quarter_of
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot

EACH: Final = 60.0
"""Seconds of a stay after which they are written; a crash forgets at most so much."""


def metered(before: Snapshot, after: Snapshot, now: float) -> tuple[Meter, Quarter | None]:
    """The meter after one step of the session, and what is to be written of it. `now` is wall clock seconds."""
    if before.project is None:
        return Meter(quarter_of(now)), None
    spent = before.meter.spent.plus(_during(before, after))
    over = after.project is None
    if not over and spent.staying < EACH and before.meter.quarter == quarter_of(now):
        return replace(before.meter, spent=spent), None
    # a step is 2 s at most, so what falls into the next quarter is next to nothing
    due = Quarter(before.project.id, before.meter.quarter or quarter_of(now), spent)
    return Meter(quarter_of(now)), due if spent.staying > 0 else None


def _during(before: Snapshot, after: Snapshot) -> Spent:
    """What went by between two steps, by how things stood in between."""
    seconds = max(0.0, after.grades.steady - before.grades.steady)
    computing = _computed(before, after)
    if not before.joined:
        return Spent()
    if before.phase is not Phase.TRAINING or before.worker is None or before.worker.joined_at is None:
        return Spent(staying=seconds, computing=computing)
    watts = before.conditions[Condition.POWER].value
    if watts is None:
        return Spent(seconds, seconds, computing)
    return Spent(seconds, seconds, computing, watts * seconds, seconds)


def _computed(before: Snapshot, after: Snapshot) -> float:
    """The worker counts from zero each time it joins."""
    if after.progress is None or after.progress is before.progress:
        return 0.0
    told, earlier = after.progress.compute_seconds, before.progress.compute_seconds if before.progress else 0.0
    return max(0.0, told - earlier if told >= earlier else told)
