"""The rule tester's words: what may be imagined, and what the rules would then say. The same question as explain --if."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final

from skep.core.session.explain import explained
from skep.core.session.snapshot import Snapshot
from skep.core.text import from_data
from skep_gui.words.speaker import Speaker

OPPOSITES: Final = (("input", "away"), ("locked", "unlocked"), ("battery", "mains"), ("metered", "unmetered"))
"""Of these one at most can be imagined at a time."""


@dataclass(frozen=True)
class Case:
    """`word` is what explain --if calls it."""

    word: str
    text: str


@dataclass(frozen=True)
class Consequence:
    """A rule that would hold. `key` is the setting behind it, "" where there is none."""

    name: str
    sentence: str
    share: str
    key: str = ""


@dataclass(frozen=True)
class Answer:
    """What would be; the first consequence decides."""

    sentence: str
    consequences: tuple[Consequence, ...] = ()
    remarks: tuple[str, ...] = field(default=())


class RuleWords(Speaker):
    def cases(self) -> list[Case]:
        return [
            Case("input", self.tr("I use this computer")),
            Case("away", self.tr("nobody uses it")),
            Case("battery", self.tr("it runs on battery")),
            Case("mains", self.tr("it runs on mains")),
            Case("fullscreen", self.tr("a full-screen program opens")),
            Case("call", self.tr("a call or film runs")),
            Case("busy", self.tr("another program uses the GPU")),
            Case("memory", self.tr("GPU memory runs short")),
            Case("processor", self.tr("others need the processor")),
            Case("hot", self.tr("the device gets too warm")),
            Case("metered", self.tr("the connection is metered")),
            Case("unmetered", self.tr("the connection is not metered")),
            Case("locked", self.tr("the screen is locked")),
            Case("unlocked", self.tr("the screen is unlocked")),
        ]

    def answer(self, snapshot: Snapshot, words: tuple[str, ...], now: float, zone: tzinfo) -> Answer:
        """`now` is wall clock seconds. Without words nothing is imagined, and nothing is answered."""
        if not words:
            return Answer(self.tr("Tick what you want to imagine."))
        body = explained(snapshot, words, now, zone)
        allowance = body["allowance"]
        said = self._said(allowance["reason"])
        if not allowance["network"]:
            said = self.tr("%1 skep leaves the swarm meanwhile.").replace("%1", said)
        return Answer(
            said,
            tuple(
                Consequence(
                    self._said(each["label"]),
                    self._said(each["allowance"]["reason"]),
                    self.numbers.percent(each["allowance"]["share"]),
                    each["setting"],
                )
                for each in body["holding"]
            ),
            tuple(map(self._said, body["remarks"])),
        )

    def _said(self, data: object) -> str:
        return self.said(from_data(data))


def without_opposite(words: tuple[str, ...], chosen: str) -> tuple[str, ...]:
    """The words that go together with the one chosen last."""
    against = {other for pair in OPPOSITES if chosen in pair for other in pair if other != chosen}
    return tuple(word for word in words if word not in against)
