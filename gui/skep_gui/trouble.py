"""What the app does about trouble: remembers errors of its own, opens their report, makes diagnostics, leads to a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from skep.core.model import Problem, Remedy
from skep_gui.errands import OUR_OWN, Errands
from skep_gui.faults import Faults
from skep_gui.present.problems import Problems, setting_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from skep_gui.desk import Desk
    from skep_gui.text_dialog import TextDialog

KEPT: Final = 5
"""Errors in the report, the latest; one that comes again from the same place is no other."""


class Trouble(QObject):
    found = Signal(object)
    """A Problem: an error of skep's own that was not met before."""
    projects_wanted = Signal()
    setting_wanted = Signal(str)
    """A setting's key, "" for the page alone."""

    def __init__(self, errands: Errands, words: Problems, parent: QObject) -> None:
        super().__init__(parent)
        self.desk: Desk | None = None
        self.window: QWidget | None = None
        self.dialog: TextDialog | None = None
        self.traces: list[str] = []
        self._places: set[str] = set()
        self._errands, self._words = errands, words
        self.faults = Faults(self)
        self.faults.happened.connect(self._remember)
        self.faults.watch()

    def close(self) -> None:
        self.faults.close()

    def speak(self, words: Problems) -> None:
        self._words = words

    def _remember(self, trace: str) -> None:
        # by the place alone: a message may hold a number that differs each time
        place = trace.rstrip().rpartition("\n")[0]
        if place in self._places:
            return
        self._places.add(place)
        self.traces = [*self.traces, trace][-KEPT:]
        self.found.emit(OUR_OWN)

    def act(self, problem: Problem) -> None:
        """Lead to what may help."""
        match problem.remedy:
            case Remedy.PROJECTS.value:
                self.projects_wanted.emit()
            case Remedy.REPORT.value:
                self.report()
            case Remedy.SETTINGS.value:
                self.setting_wanted.emit("")
            case _:
                if key := setting_of(problem):
                    self.setting_wanted.emit(key)
                else:
                    self.diagnose()

    def report(self) -> None:
        """The last errors of skep's own, to be copied."""
        title, what = self.tr("Report of an error"), self.tr("Nothing of this is sent anywhere. Copy it to tell us.")
        traces = "\n\n".join(self.traces)
        self._open(title, what, "skep-report.txt", lambda desk: desk.report(traces, self._words))

    def diagnose(self) -> None:
        title = self.tr("Diagnostics")
        what = self.tr(
            "What somebody who helps you needs to know. Addresses, keys and your name are masked; "
            "nothing is sent anywhere. Read it before you pass it on."
        )
        self._open(title, what, "skep-diagnostics.txt", lambda desk: desk.diagnose())

    def _open(self, title: str, what: str, file: str, make: Callable[[Desk], str]) -> None:
        from skep_gui.text_dialog import TextDialog  # noqa: PLC0415 - seldom seen

        if (desk := self.desk) is None:
            return
        if self.dialog is not None:
            self.dialog.close()
        self.dialog = dialog = TextDialog(title, what, file, self.window)
        dialog.say(self.tr("Gathering …"))

        def show(text: str) -> None:
            dialog.show_text(text)
            dialog.say("")

        def failed(problem: Problem) -> None:
            dialog.say(f"{problem.title} {problem.hint}")

        dialog.save_wanted.connect(lambda path, text: self._save(desk, path, text, dialog))
        self._errands.run(lambda: make(desk), show, failed, slow=True)
        dialog.open()

    def _save(self, desk: Desk, path: str, text: str, dialog: TextDialog) -> None:
        def written(where: str) -> None:
            dialog.say(self.tr("Written to %1").replace("%1", where))

        def failed(problem: Problem) -> None:
            dialog.say(f"{problem.title} {problem.hint}")

        self._errands.run(lambda: desk.keep(path, text), written, failed)
