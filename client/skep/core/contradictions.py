"""Settings that do not go together, told in words: the stricter one counts, and nothing is changed silently. Pure."""

from __future__ import annotations

from skep.core import hours
from skep.core.rules import Settings, number_of, percent, share_of, using


def contradictions(settings: Settings) -> tuple[str, ...]:
    """One sentence for each pair of settings of which one makes the other pointless."""
    found = (
        _shares(settings),
        _gentle(settings),
        _gentle_away(settings),
        _hours(settings),
        _long_pauses(settings),
    )
    return tuple(sentence for sentence in found if sentence)


def _shares(settings: Settings) -> str:
    away, wanted = share_of(settings, "compute.share_away"), share_of(settings, "compute.share_using")
    if wanted <= away:
        return ""
    return (
        f"The share while you use this computer ({percent(wanted)}) is above the share while away ({percent(away)}): "
        f"the lower one counts, {percent(away)}."
    )


def _gentle(settings: Settings) -> str:
    wanted, limit = share_of(settings, "when.gentle_using"), using(settings)
    if wanted <= limit or hours.Grade.GENTLE not in hours.grid(str(settings.get("when.schedule", ""))):
        return ""
    return (
        f"The share in gentle hours while you use this computer ({percent(wanted)}) is above the share at all hours "
        f"({percent(limit)}): the lower one counts, {percent(limit)}."
    )


def _gentle_away(settings: Settings) -> str:
    wanted, limit = share_of(settings, "when.gentle_away"), share_of(settings, "compute.share_away")
    if wanted <= limit or hours.Grade.GENTLE not in hours.grid(str(settings.get("when.schedule", ""))):
        return ""
    return (
        f"The share in gentle hours while away ({percent(wanted)}) is above the share at all hours ({percent(limit)}): "
        f"the lower one counts, {percent(limit)}."
    )


def _hours(settings: Settings) -> str:
    grid = hours.grid(str(settings.get("when.schedule", "")))
    if any(grade is not hours.Grade.OFF for grade in grid):
        return ""
    return "The schedule is off at all hours: skep never computes."


def _long_pauses(settings: Settings) -> str:
    seconds = number_of(settings, "memory.free_gpu_seconds")
    minutes = number_of(settings, "memory.leave_swarm_minutes")
    if seconds <= minutes * 60:
        return ""
    return (
        f"A pause leaves the swarm after {minutes:g} min, before it frees GPU memory after {seconds:g} s: "
        "leaving frees it too."
    )
