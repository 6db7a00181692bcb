"""The segments of a day's timeline: spans of time under one rule, their shares, and totals per rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from skep.core.policy.allowance import Change
from skep.core.policy.rules import RAMP
from skep.core.text import Text

SHORT: Final = 300.0
"""Seconds; a shorter segment is not visible on the strip of a day."""


@dataclass(frozen=True)
class Segment:
    """The span [begin, end) in wall clock seconds. `share` is the mean; `project` is "" when there was none."""

    begin: float
    end: float
    project: str
    rule: str
    share: float
    reason: Text

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def spans(changes: Sequence[Change], begin: float, end: float) -> list[tuple[Change, float, float]]:
    """Each change with its span until the next one, cut to [begin, end); outside of that, the span ends before it
    begins.
    """
    ends = [*(change.at for change in changes[1:]), end]
    return [(each, max(begin, each.at), min(end, until)) for each, until in zip(changes, ends, strict=False)]


def segments(changes: Sequence[Change], begin: float, end: float) -> list[Segment]:
    """One segment per continuous span under one rule, from `begin` to `end`; a ramp belongs to the rule after it."""
    cut = [
        Segment(since, until, each.project, each.rule, each.share, each.reason)
        for each, since, until in spans(changes, begin, end)
    ]
    return _joined([each for each in _without_ramps(cut) if each.seconds > 0])


def _without_ramps(cut: Sequence[Segment]) -> list[Segment]:
    named: list[Segment] = []
    following: Segment | None = None
    for each in reversed(cut):
        if each.rule == RAMP.name and following is not None and following.project == each.project:
            named.append(replace(each, rule=following.rule, reason=following.reason))
        else:
            named.append(each)
        following = named[-1]
    return named[::-1]


def _joined(cut: Sequence[Segment]) -> list[Segment]:
    made: list[Segment] = []
    for each in cut:
        last = made[-1] if made else None
        if last is not None and last.end == each.begin and (last.project, last.rule) == (each.project, each.rule):
            made[-1] = _with(last, each)
        else:
            made.append(each)
    return made


def _with(first: Segment, second: Segment) -> Segment:
    """Both merged into one, with the rule and reason of the longer one."""
    longer = first if first.seconds > second.seconds else second
    whole = first.seconds + second.seconds
    share = (first.share * first.seconds + second.share * second.seconds) / whole
    return replace(longer, begin=first.begin, end=second.end, share=share)


def legible(whole: Sequence[Segment], shortest: float = SHORT) -> list[Segment]:
    """Fewer segments, none shorter than `shortest`: a shorter one is merged into its longer neighbour.

    Totals per rule (`by_rule`) must be computed from the unmerged segments.
    """
    made = list(whole)
    while len(made) > 1:
        at = min(range(len(made)), key=lambda each: made[each].seconds)
        if made[at].seconds >= shortest:
            break
        neighbours = [each for each in (at - 1, at + 1) if 0 <= each < len(made)]
        into = max(neighbours, key=lambda each: made[each].seconds)
        first, second = min(at, into), max(at, into)
        kept = made[into]
        made[first : second + 1] = [replace(kept, begin=made[first].begin, end=made[second].end)]
        made = _joined(made)
    return made


def by_rule(whole: Sequence[Segment]) -> list[Segment]:
    """One segment per rule, the longest first; `end` is `begin` plus the total time, the reason that of the longest
    one.

    Time without a project is omitted.
    """
    found: dict[str, list[Segment]] = {}
    for each in whole:
        if each.project:
            found.setdefault(each.rule, []).append(each)
    return sorted((_summed(group) for group in found.values()), key=lambda each: -each.seconds)


def _summed(group: Sequence[Segment]) -> Segment:
    longest, whole = max(group, key=lambda each: each.seconds), sum(each.seconds for each in group)
    share = sum(each.share * each.seconds for each in group) / whole
    return replace(longest, end=longest.begin + whole, share=share)
