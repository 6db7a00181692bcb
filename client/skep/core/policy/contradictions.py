"""Settings that do not go together, told in words: the stricter one counts, and nothing is changed silently. Pure."""

from __future__ import annotations

from skep.core.policy.rules import Settings, number_of, share_of, using
from skep.core.settings import hours
from skep.core.text import NOTHING, Text


def contradictions(settings: Settings) -> tuple[Text, ...]:
    """One sentence for each pair of settings of which one makes the other pointless."""
    found = (
        _shares(settings),
        _gentle(settings),
        _gentle_away(settings),
        _hours(settings),
        _long_pauses(settings),
    )
    return tuple(sentence for sentence in found if sentence)


def _shares(settings: Settings) -> Text:
    away, wanted = share_of(settings, "compute.share_away"), share_of(settings, "compute.share_using")
    if wanted <= away:
        return NOTHING
    return Text("remark.share_while_you_use_computer", wanted=wanted, away=away)


def _gentle(settings: Settings) -> Text:
    wanted, limit = share_of(settings, "when.gentle_using"), using(settings)
    if wanted <= limit or hours.Grade.GENTLE not in hours.grid(str(settings.get("when.schedule", ""))):
        return NOTHING
    return Text("remark.share_gentle_hours_while_you", wanted=wanted, limit=limit)


def _gentle_away(settings: Settings) -> Text:
    wanted, limit = share_of(settings, "when.gentle_away"), share_of(settings, "compute.share_away")
    if wanted <= limit or hours.Grade.GENTLE not in hours.grid(str(settings.get("when.schedule", ""))):
        return NOTHING
    return Text("remark.share_gentle_hours_while_away", wanted=wanted, limit=limit)


def _hours(settings: Settings) -> Text:
    grid = hours.grid(str(settings.get("when.schedule", "")))
    if any(grade is not hours.Grade.OFF for grade in grid):
        return NOTHING
    return Text("remark.schedule_off_all_hours_skep")


def _long_pauses(settings: Settings) -> Text:
    seconds = number_of(settings, "memory.free_gpu_seconds")
    minutes = number_of(settings, "memory.leave_swarm_minutes")
    if seconds <= minutes * 60:
        return NOTHING
    return Text("remark.pause_leaves_swarm_after_min", minutes=minutes, seconds=seconds)
