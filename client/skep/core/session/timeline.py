"""Entries for the ledger: changes of the allowance with their reasons, reaction times, and the usage of a stay. Pure.

The engine writes the entries.
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
from skep.core.session import renewal
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Falling, Snapshot
from skep.core.session.transitions import SLEEP_SECONDS, Step
from skep.core.text import NOTHING, Text

KEPT: Final = 20
"""Number of reactions in the snapshot."""
LONGEST_REACTION: Final = 600.0
"""Seconds; a longer time is the result of a clock adjustment."""
SLIGHT: Final = 0.049
"""Smaller changes of the share under the same rule, such as those of the heat loop, are not recorded."""
NOT_JOINED: Final = Text("timeline.not_project")
NOT_RUNNING: Final = Text("timeline.skep_was_not_running")
AGAIN: Final = "again"
"""Recorded instead of a rule while a worker joins again after a failure or an absence, or trains nothing."""
SLEEP: Final = "sleep"
"""Recorded instead of a rule while the computer is suspended."""


def recorded(snapshot: Snapshot, now: float) -> Step:
    """The snapshot with the current entry of the timeline, and the entry to write if it is new."""
    entry = _entry(snapshot, now)
    if entry is None or not _is_news(snapshot.change, entry):
        return snapshot, ()
    return replace(snapshot, change=entry), (e.RecordChange(entry),)


def slept(snapshot: Snapshot, message: m.Message, now: float) -> Step:
    """An entry for the time in which the computer was suspended; the current allowance is then recorded again."""
    last = snapshot.change
    if not isinstance(message, m.Slept) or last is None or not last.project or message.seconds <= SLEEP_SECONDS:
        return snapshot, ()
    asleep = Change(max(last.at, now - message.seconds), last.project, 0.0, SLEEP, Text("timeline.computer_slept"))
    return replace(snapshot, change=asleep), (e.RecordChange(asleep),)


def closing(last: Change | None, alive: float | None, now: float) -> Change | None:
    """The end of an entry left open by a crash of skep; `alive` is when it last wrote."""
    if last is None or not last.project:
        return None
    at = last.at if alive is None else max(last.at, min(alive, now))
    return Change(at, "", 0.0, "", NOT_RUNNING)


def _entry(snapshot: Snapshot, now: float) -> Change | None:
    if snapshot.project is None:
        # the end of a stay is recorded; before the first stay there is nothing to record
        return None if snapshot.change is None else Change(now, "", 0.0, "", NOT_JOINED)
    if not snapshot.tries_again:
        return None  # the allowance during a join that fails is not recorded
    allowance = snapshot.allowance
    away = snapshot.phase in (Phase.RECOVERING, Phase.JOINING) or snapshot.restart_at is not None
    if (away or snapshot.waiting) and allowance.share > 0:
        # without a worker in the swarm, or while it waits, nothing is trained, whatever the rules grant
        why = renewal.AFRESH if snapshot.renewing else snapshot.waiting or Text("timeline.reaching_swarm_again")
        return Change(now, snapshot.project.id, 0.0, AGAIN, why)
    share, rule, reason = allowance.share, allowance.rule, allowance.reason
    return Change(now, snapshot.project.id, share, rule, reason, allowance.memory, allowance.network)


def _is_news(last: Change | None, entry: Change) -> bool:
    if last is None or replace(entry, at=last.at, share=last.share) != last:
        return True
    return entry.rule != RAMP.name and abs(entry.share - last.share) > SLIGHT


# --- reactions


def watched(before: Snapshot, after: Snapshot, message: m.Message, now: float) -> Snapshot:
    """`after`, with `falling` set when the share was reduced while a worker was in the swarm."""
    down = after.allowance.share < before.allowance.share
    up = after.allowance.share > before.allowance.share
    worker = after.worker
    # a reduction by the heat loop protects the device and is not a reaction to the user
    if down and after.allowance.rule != "heat" and worker is not None and worker.joined_at is not None:
        since = _called_for(message, after, now)
        return replace(after, falling=Falling(after.allowance.rule, after.allowance.share, since))
    return replace(after, falling=None) if up and after.falling is not None else after


def _called_for(message: m.Message, after: Snapshot, now: float) -> float:
    """The time of the cause of a reduction: for input, that of the input and not of its reading."""
    if not isinstance(message, m.ConditionsSeen):
        return now
    at = now if message.at is None else min(message.at, now)
    reading = message.seen.get(Condition.INPUT)
    if after.allowance.rule == "input" and reading is not None and reading.source is Source.ANSWERS:
        return at - float(reading.value or 0.0)
    return at


def obeyed(snapshot: Snapshot, message: m.WorkerPaused, now: float) -> Step:
    """Handle the worker's confirmation of a share; a reaction, unless more than a micro-batch had to end first."""
    falling = snapshot.falling
    if falling is None or message.share > falling.share:
        return snapshot, ()
    done = replace(snapshot, falling=None)
    seconds = now - falling.since
    if message.behind or not 0.0 <= seconds <= LONGEST_REACTION:
        return done, ()
    reaction = Reaction(now, falling.rule, message.share, seconds)
    return replace(done, reactions=(*done.reactions, reaction)[-KEPT:]), (e.RecordReaction(reaction),)


def sentence(reactions: Sequence[Reaction]) -> Text:
    """As "Gave your computer back in 0.08 s (last 20)."; "" without reactions."""
    if not reactions:
        return NOTHING
    import statistics  # noqa: PLC0415 - it brings decimal and fractions, and the tray waits for this module

    usual = statistics.median(each.seconds for each in reactions)
    return Text("timeline.gave_your_computer_back_s", usual=usual, reactions=len(reactions))


# --- the usage of a stay: time, and energy where the device reports its power. Seconds are the policy's steady time,
# which excludes suspends and clock adjustments. The usage is written to the ledger once a minute.

EACH: Final = 60.0
"""Seconds between two writes of the usage; a crash loses at most this much."""


def metered(before: Snapshot, after: Snapshot, now: float) -> tuple[Meter, Quarter | None]:
    """The meter after one step of the session, and the usage to write. `now` is wall clock seconds."""
    if before.project is None:
        return Meter(quarter_of(now)), None
    spent = before.meter.spent.plus(_during(before, after))
    over = after.project is None
    if not over and spent.staying < EACH and before.meter.quarter == quarter_of(now):
        return replace(before.meter, spent=spent), None
    # a step is 2 s at most, so the part in the next quarter is negligible
    due = Quarter(before.project.id, before.meter.quarter or quarter_of(now), spent)
    return Meter(quarter_of(now)), due if spent.staying > 0 else None


def _during(before: Snapshot, after: Snapshot) -> Spent:
    """The usage between two steps, by the state before the second."""
    seconds = max(0.0, after.policy_state.steady - before.policy_state.steady)
    computing = _computed(before, after)
    if not before.joined:
        return Spent()
    trains = before.phase is Phase.TRAINING and not before.waiting
    if not trains or before.worker is None or before.worker.joined_at is None:
        return Spent(staying=seconds, computing=computing)
    watts = before.conditions[Condition.POWER].value
    if watts is None:
        return Spent(seconds, seconds, computing)
    return Spent(seconds, seconds, computing, watts * seconds, seconds)


def _computed(before: Snapshot, after: Snapshot) -> float:
    """Seconds of computing between two steps; the worker counts from zero each time it joins."""
    if after.progress is None or after.progress is before.progress:
        return 0.0
    told, earlier = after.progress.compute_seconds, before.progress.compute_seconds if before.progress else 0.0
    return max(0.0, told - earlier if told >= earlier else told)
