"""A day's timeline as segments: what was allowed from when to when, by which rule, and how long each rule held. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from skep.core.policy.allowance import Change
from skep.core.policy.rules import RAMP
from skep.core.text import Text

SHORT: Final = 300.0
"""Seconds below which a segment cannot be seen on a strip of a day."""


@dataclass(frozen=True)
class Segment:
    """From `begin` until before `end` (wall clock seconds). `share` is the mean; `project` "" means that there was none."""

    begin: float
    end: float
    project: str
    rule: str
    share: float
    reason: Text

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def segments(changes: Sequence[Change], begin: float, end: float) -> list[Segment]:
    """One for each stretch under one rule, from `begin` to `end`; the way up belongs to the rule that it leads to."""
    ends = [*(change.at for change in changes[1:]), end]
    cut = [
        Segment(max(begin, each.at), min(end, until), each.project, each.rule, each.share, each.reason)
        for each, until in zip(changes, ends, strict=False)
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
    """Both as one, in the words of the longer one."""
    longer = first if first.seconds > second.seconds else second
    whole = first.seconds + second.seconds
    share = (first.share * first.seconds + second.share * second.seconds) / whole
    return replace(longer, begin=first.begin, end=second.end, share=share)


def legible(whole: Sequence[Segment], shortest: float = SHORT) -> list[Segment]:
    """Fewer segments, none shorter than `shortest`: what is too short to be seen goes to its longer neighbour.

    The total of each rule (`by_rule`) is counted before, so that nothing is lost.
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
    """One for each rule that held, the longest first; `end` is `begin` plus all its time, the reason that of its longest.

    Time in no project is left out.
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
