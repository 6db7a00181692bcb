"""What is kept of the allowance over time: each change with its reason, how quickly the computer was given
back, and what a stay costs.

Pure: entries are data, whoever holds the ledger writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from skep.core.policy.allowance import Change, Reaction
from skep.core.policy.conditions import Condition, Source
from skep.core.policy.rules import RAMP
from skep.core.record.usage import Meter, Quarter, Spent, quarter_of
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Falling, Snapshot
from skep.core.session.transitions import SLEEP_SECONDS
from skep.core.text import NOTHING, Text

KEPT: Final = 20
"""Reactions in the snapshot."""
LONGEST_REACTION: Final = 600.0
"""Seconds; what seems to have taken longer is a clock that was put right meanwhile."""
SLIGHT: Final = 0.049
"""A change of share within one rule that is less than this, as the heat loop makes them, is not worth an entry."""
NOT_JOINED: Final = Text("timeline.not_project")
NOT_RUNNING: Final = Text("timeline.skep_was_not_running")
AGAIN: Final = "again"
"""What stands in place of a rule while a worker that failed, or was away, joins again."""
SLEEP: Final = "sleep"
"""What stands in place of a rule while the computer sleeps."""

Recorded = tuple[Snapshot, tuple[e.Effect, ...]]


def recorded(snapshot: Snapshot, now: float) -> Recorded:
    """The snapshot with the entry of the timeline that is in force, which is written when it is new."""
    entry = _entry(snapshot, now)
    if entry is None or not _is_news(snapshot.change, entry):
        return snapshot, ()
    return replace(snapshot, change=entry), (e.RecordChange(entry),)


def slept(snapshot: Snapshot, message: m.Message, now: float) -> Recorded:
    """An entry for the time in which the computer slept; what holds now is then news again."""
    last = snapshot.change
    if not isinstance(message, m.Slept) or last is None or not last.project or message.seconds <= SLEEP_SECONDS:
        return snapshot, ()
    asleep = Change(max(last.at, now - message.seconds), last.project, 0.0, SLEEP, Text("timeline.computer_slept"))
    return replace(snapshot, change=asleep), (e.RecordChange(asleep),)


def closing(last: Change | None, alive: float | None, now: float) -> Change | None:
    """The end of an entry that a life of skep which broke off left open; `alive` is when it last wrote."""
    if last is None or not last.project:
        return None
    at = last.at if alive is None else max(last.at, min(alive, now))
    return Change(at, "", 0.0, "", NOT_RUNNING)


def _entry(snapshot: Snapshot, now: float) -> Change | None:
    if snapshot.project is None:
        # the end of a stay is told; before the first one there is nothing to tell
        return None if snapshot.change is None else Change(now, "", 0.0, "", NOT_JOINED)
    if not snapshot.joined:
        return None  # what a join that comes to nothing was allowed is of no interest
    allowance = snapshot.allowance
    if snapshot.phase in (Phase.RECOVERING, Phase.JOINING) and allowance.share > 0:
        # allowed is not done: without a worker in the swarm nothing is trained, whatever the rules grant
        return Change(now, snapshot.project.id, 0.0, AGAIN, Text("timeline.reaching_swarm_again"))
    share, rule, reason = allowance.share, allowance.rule, allowance.reason
    return Change(now, snapshot.project.id, share, rule, reason, allowance.memory, allowance.network)


def _is_news(last: Change | None, entry: Change) -> bool:
    if last is None or replace(entry, at=last.at, share=last.share) != last:
        return True
    return entry.rule != RAMP.name and abs(entry.share - last.share) > SLIGHT


# --- reactions


def watched(before: Snapshot, after: Snapshot, message: m.Message, now: float) -> Snapshot:
    """`after`, with what is awaited when the share went down while a worker of the swarm ran."""
    down = after.allowance.share < before.allowance.share
    up = after.allowance.share > before.allowance.share
    worker = after.worker
    # the heat loop protects the device, it gives nothing back to anybody
    if down and after.allowance.rule != "heat" and worker is not None and worker.joined_at is not None:
        since = _called_for(message, after, now)
        return replace(after, falling=Falling(after.allowance.rule, after.allowance.share, since))
    return replace(after, falling=None) if up and after.falling is not None else after


def _called_for(message: m.Message, after: Snapshot, now: float) -> float:
    """The moment of what called for giving back: of the input itself, not of its reading."""
    if not isinstance(message, m.ConditionsSeen):
        return now
    at = now if message.at is None else min(message.at, now)
    reading = message.seen.get(Condition.INPUT)
    if after.allowance.rule == "input" and reading is not None and reading.source is Source.ANSWERS:
        return at - float(reading.value or 0.0)
    return at


def obeyed(snapshot: Snapshot, message: m.WorkerPaused, now: float) -> Recorded:
    """The worker's word that it obeys a share; a reaction, unless it had to end more than a micro-batch first."""
    falling = snapshot.falling
    if falling is None or message.share > falling.share:
        return snapshot, ()
    done = replace(snapshot, falling=None)
    seconds = now - falling.since
    if message.behind or not 0.0 <= seconds <= LONGEST_REACTION:
        return done, ()
    reaction = Reaction(now, falling.rule, message.share, seconds)
    return replace(done, reactions=(*done.reactions, reaction)[-KEPT:]), (e.RecordReaction(reaction),)


def median(reactions: Sequence[Reaction]) -> float | None:
    """Seconds that giving back usually takes; None before it happened."""
    import statistics  # noqa: PLC0415 - it brings decimal and fractions, and the tray waits for this module

    return statistics.median(each.seconds for each in reactions) if reactions else None


def sentence(reactions: Sequence[Reaction]) -> Text:
    """As "Gave your computer back in 0.08 s (last 20)."; "" before it happened."""
    usual = median(reactions)
    return (
        NOTHING if usual is None else Text("timeline.gave_your_computer_back_s", usual=usual, reactions=len(reactions))
    )


# --- what a stay costs this computer: time, and energy where the device tells its power. Seconds are those of the policy's
# steady time, which neither sleep nor a clock put right can swell. What was spent is handed to the ledger once a minute.

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
