"""The texts of the strips below the window: a problem and its action, and an update of skep; without Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from skep.core.redact import Section, redacted_report
from skep.core.settings.settings import SETTINGS
from skep.core.text import NOTHING, Problem, Remedy
from skep.language import units
from skep_gui.words.speaker import Speaker, filled

SETTING: Final = "setting:"


class Problems(Speaker):
    def action(self, problem: Problem) -> str:
        """The text of a problem's one button beside Close."""
        match problem.remedy:
            case Remedy.PROJECTS.value:
                return self.tr("Open Projects")
            case Remedy.SETTINGS.value:
                return self.tr("Open Settings")
            case Remedy.REPORT.value:
                return self.tr("Show the report")
            case Remedy.CONNECTION.value:
                return self.tr("Check the connection")
            case _:
                return self.tr("Open the setting") if remedy_setting(problem) else self.tr("Diagnose …")

    def report(self, trace: str, versions: Sequence[str], home: str, names: Mapping[str, str]) -> str:
        """What went wrong, without data that identifies the user or the place."""
        sections = [
            Section(self.tr("Internal error in skep"), trace.rstrip().splitlines()),
            Section(self.tr("Versions"), versions),
        ]
        return redacted_report(sections, home, names)


def remedy_setting(problem: Problem) -> str:
    """The key of the setting that the action opens, "" if there is none."""
    kind, _, key = problem.remedy.partition(":")
    return key if f"{kind}:" == SETTING and key in SETTINGS else ""


class UpdateStage(Enum):
    NONE = auto()
    FOUND = auto()
    TOLD = auto()
    """Found; the system's package manager installs it."""
    FETCHING = auto()
    UNPACKING = auto()
    INSTALLED = auto()
    WENT_BACK = auto()
    NEWEST = auto()
    FAILED = auto()


UNDER_WAY = (UpdateStage.FETCHING, UpdateStage.UNPACKING)
STARTS_NEXT = (UpdateStage.INSTALLED, UpdateStage.WENT_BACK)


@dataclass(frozen=True)
class Update:
    """The state of an update. `part` is the progress of the stage, 0..1; `size` in bytes, 0 if unknown."""

    stage: UpdateStage = UpdateStage.NONE
    version: str = ""
    notes: str = ""
    part: float = 0.0
    size: int = 0
    problem: Problem | None = None


@dataclass(frozen=True)
class UpdateView:
    """The texts of the strip. `action` is its first button's, "" for no button; `part` is None if no bar is shown."""

    title: str
    hint: str
    action: str
    close: str
    part: float | None = None


class UpdateWords(Speaker):
    def view(self, update: Update) -> UpdateView | None:
        """None if there is nothing to show."""
        version, later = update.version, self.tr("Later")
        match update.stage:
            case UpdateStage.NONE:
                return None
            case UpdateStage.FOUND:
                title = filled(self.tr("skep %1 can be installed."), version)
                return UpdateView(title, update.notes, self.tr("Install"), later)
            case UpdateStage.TOLD:
                hint = self.tr("Your system's software updates install it, as they did with this one.")
                title = filled(self.tr("skep %1 is there."), version)
                return UpdateView(title, hint, "", self.tr("Close"))
            case UpdateStage.FETCHING | UpdateStage.UNPACKING:
                return self._under_way(update)
            case UpdateStage.INSTALLED:
                title = filled(self.tr("skep %1 is installed."), version)
                hint = self.tr("It starts the next time you start skep. What you have contributed stays.")
                return UpdateView(title, hint, self.tr("Start it now"), later)
            case UpdateStage.WENT_BACK:
                title = filled(self.tr("skep %1 is used again."), version)
                hint = self.tr("It starts the next time you start skep.")
                return UpdateView(title, hint, self.tr("Start it now"), later)
            case UpdateStage.NEWEST:
                title = filled(self.tr("skep %1 is the newest."), version)
                return UpdateView(title, "", "", self.tr("Close"))
            case UpdateStage.FAILED:
                title, hint = self.tongue.core.problem(update.problem or Problem(NOTHING))
                return UpdateView(title, hint, "", self.tr("Close"))

    def _under_way(self, update: Update) -> UpdateView:
        done = f"{units.percent(update.part)} · {self.numbers.size(update.size)}" if update.size else ""
        words = (
            self.tr("Downloading skep %1") if update.stage is UpdateStage.FETCHING else self.tr("Installing skep %1")
        )
        return UpdateView(filled(words, update.version), done, "", self.tr("Cancel"), update.part)

    def go_back(self, version: str) -> str:
        """The text of the button in the settings."""
        return filled(self.tr("Go back to skep %1"), version)
