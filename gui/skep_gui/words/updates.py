"""What is said of an update of skep itself, from its being found to the next start; without Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from skep.core.text import NOTHING, Problem
from skep_gui.words.speaker import Speaker


class Stage(Enum):
    NONE = auto()
    FOUND = auto()
    TOLD = auto()
    """Found, and the system installs it."""
    FETCHING = auto()
    UNPACKING = auto()
    INSTALLED = auto()
    WENT_BACK = auto()
    NEWEST = auto()
    FAILED = auto()


UNDER_WAY = (Stage.FETCHING, Stage.UNPACKING)
STARTS_NEXT = (Stage.INSTALLED, Stage.WENT_BACK)


@dataclass(frozen=True)
class Update:
    """Where an update is. `part` is how much of the stage is done, 0..1; `size` in bytes, 0 where it is not known."""

    stage: Stage = Stage.NONE
    version: str = ""
    notes: str = ""
    part: float = 0.0
    size: int = 0
    problem: Problem | None = None


@dataclass(frozen=True)
class UpdateView:
    """One strip. `action` is the words of its first button, "" where it has none; `part` None where no bar is shown."""

    title: str
    hint: str
    action: str
    close: str
    part: float | None = None


class UpdateWords(Speaker):
    def view(self, update: Update) -> UpdateView | None:
        """None while there is nothing to be said."""
        version, later = update.version, self.tr("Later")
        match update.stage:
            case Stage.NONE:
                return None
            case Stage.FOUND:
                title = self.tr("skep %1 can be installed.").replace("%1", version)
                return UpdateView(title, update.notes, self.tr("Install"), later)
            case Stage.TOLD:
                hint = self.tr("Your system's software updates install it, as they did with this one.")
                title = self.tr("skep %1 is there.").replace("%1", version)
                return UpdateView(title, hint, "", self.tr("Close"))
            case Stage.FETCHING | Stage.UNPACKING:
                return self._under_way(update)
            case Stage.INSTALLED:
                title = self.tr("skep %1 is installed.").replace("%1", version)
                hint = self.tr("It starts the next time you start skep. What you have contributed stays.")
                return UpdateView(title, hint, self.tr("Start it now"), later)
            case Stage.WENT_BACK:
                title = self.tr("skep %1 is used again.").replace("%1", version)
                hint = self.tr("It starts the next time you start skep.")
                return UpdateView(title, hint, self.tr("Start it now"), later)
            case Stage.NEWEST:
                title = self.tr("skep %1 is the newest.").replace("%1", version)
                return UpdateView(title, "", "", self.tr("Close"))
            case Stage.FAILED:
                title, hint = self.tongue.core.problem(update.problem or Problem(NOTHING))
                return UpdateView(title, hint, "", self.tr("Close"))

    def _under_way(self, update: Update) -> UpdateView:
        done = f"{self.numbers.percent(update.part)} · {self.numbers.size(update.size)}" if update.size else ""
        words = self.tr("Downloading skep %1") if update.stage is Stage.FETCHING else self.tr("Installing skep %1")
        return UpdateView(words.replace("%1", update.version), done, "", self.tr("Cancel"), update.part)

    def go_back(self, version: str) -> str:
        """The words of the button in the settings."""
        return self.tr("Go back to skep %1").replace("%1", version)
