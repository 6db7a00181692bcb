"""A day's timeline in words: when and why it trained or did not, each segment with its rule and setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skep.core.policy import rules
from skep.core.record.timeline_segments import Segment, by_rule, legible
from skep.core.session.timeline import AGAIN, SLEEP
from skep.core.settings.hours import local
from skep.language import units
from skep_gui.words.now import setting_of
from skep_gui.words.speaker import Speaker, filled
from skep_gui.words.stats import Cell, Chart, Record, Stats

STUB: Final = 0.08
"""Minimum height of a segment without a share, so that it is visible."""
LONGEST_BACK: Final = 365
_TONES: Final = {
    "away": "training",
    "ramp": "training",
    "input": "you",
    "paused": "you",
    "full_screen": "you",
    "call": "you",
    "schedule": "schedule",
    SLEEP: "none",
    AGAIN: "none",
    "": "none",
}
"""All other rules are about the computer itself."""
_HOURS: Final = (0, 6, 12, 18)
"""Local hours with a label; the end of the day has one too."""


@dataclass(frozen=True)
class RuleTime:
    """How long a rule was in effect that day. `key` is the setting behind it, "" if there is none."""

    tone: str
    name: str
    time: str
    sentence: str
    key: str


class Day(Speaker):
    """`_stats` formats dates, so that all pages format them alike."""

    def title(self, record: Record) -> str:
        back = record.asked.back
        if back == 0:
            return self.tr("Today: why it trained or did not")
        named = self.tr("Yesterday") if back == 1 else Stats(self.tongue).date(local(record.day[0], record.zone))
        return filled(self.tr("%1: why it trained or did not"), named)

    def chart(self, record: Record) -> Chart:
        begin, end = record.day
        whole = max(1.0, end - begin)
        cells = [
            Cell(
                left=(each.begin - begin) / whole,
                width=each.seconds / whole,
                height=max(STUB, each.share),
                tone=tone(each.rule),
                name=self.sentence(each, record),
                key=setting_of(each.rule),
            )
            for each in legible(record.segments)
            if each.project
        ]
        midnight = local(begin, record.zone)
        # the place comes from the moment: a day on which the clock is set has 23 or 25 hours
        moments = [*(midnight.replace(hour=hour).timestamp() for hour in _HOURS), end]
        labels = [((at - begin) / whole, self.numbers.time(local(at, record.zone))) for at in moments]
        return Chart(tuple(cells), tuple(labels))

    def sentence(self, segment: Segment, record: Record) -> str:
        """As "08:12 to 09:40, 20 %: 20 % while you use this computer."."""
        begin, end = (self.numbers.time(local(at, record.zone)) for at in (segment.begin, segment.end))
        text = self.tr("%1 to %2, share %3: %4")
        return filled(text, begin, end, units.percent(segment.share), self.said(segment.reason))

    def rules(self, record: Record) -> list[RuleTime]:
        """Each rule that was in effect that day with its total time, the longest first."""
        return [
            RuleTime(
                tone(each.rule),
                self.label(each.rule),
                units.span(each.seconds),
                self.said(each.reason),
                setting_of(each.rule),
            )
            for each in by_rule(record.segments)
        ]

    def label(self, rule: str) -> str:
        if rule == SLEEP:
            return self.tr("Asleep")
        if rule == AGAIN:
            return self.tr("No swarm")
        return self.said(rules.ALL[rule].label) if rule in rules.ALL else rule

    def none(self, record: Record) -> str:
        """The text for a day without entries."""
        if record.asked.back == 0:
            return self.tr("Nothing yet today. While you are in a project, each change of the share is shown here.")
        return self.tr("In no project on that day.")


def tone(rule: str) -> str:
    return _TONES.get(rule, "machine")
