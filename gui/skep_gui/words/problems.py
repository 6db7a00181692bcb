"""What a problem leads to, in words; and the report of an error of skep's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from skep.core.redact import Section, written
from skep.core.settings.settings import SETTINGS
from skep.core.text import Problem, Remedy
from skep_gui.words.speaker import Speaker

SETTING: Final = "setting:"


class Problems(Speaker):
    def action(self, problem: Problem) -> str:
        """The words of the one button that a problem has beside Close."""
        match problem.remedy:
            case Remedy.PROJECTS.value:
                return self.tr("Open Projects")
            case Remedy.SETTINGS.value:
                return self.tr("Open Settings")
            case Remedy.REPORT.value:
                return self.tr("Show the report")
            case _:
                return self.tr("Open the setting") if setting_of(problem) else self.tr("Diagnose …")

    def report(self, trace: str, versions: Sequence[str], home: str, names: Mapping[str, str]) -> str:
        """What went wrong, without anything that says who or where the person is."""
        sections = [
            Section(self.tr("skep met an error of its own"), trace.rstrip().splitlines()),
            Section(self.tr("Versions"), versions),
        ]
        return written(sections, home, names)


def setting_of(problem: Problem) -> str:
    """The key of the setting that it leads to, "" where it leads to none."""
    kind, _, key = problem.remedy.partition(":")
    return key if f"{kind}:" == SETTING and key in SETTINGS else ""
