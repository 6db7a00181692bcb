"""The calm strip at the bottom of the window: what happened, what can be done, and one way there; only while there is one."""

from __future__ import annotations

from PySide6.QtCore import Signal

from skep.core.plain_text import plain
from skep.core.text import Problem
from skep_gui.widgets.parts import toned
from skep_gui.widgets.strip import Strip
from skep_gui.words.notices import Problems


class ProblemStrip(Strip):
    acted = Signal(object)
    """The Problem whose button was pressed."""
    dismissed = Signal()

    def __init__(self, words: Problems) -> None:
        super().__init__("strip")
        self._words = words
        self._shown: Problem | None = None
        self._dismissed: Problem | None = None
        toned(self.title, "problem")
        self.act_button.clicked.connect(lambda: self.acted.emit(self._shown))
        self.close_button.setText(self.tr("Close"))
        self.close_button.setAccessibleName(self.tr("Close this message"))
        self.close_button.clicked.connect(self._dismiss)

    def show_problem(self, problem: Problem | None) -> None:
        """None hides it; one that was closed stays closed until another comes."""
        if problem is None:
            self._dismissed = None
        self._shown = problem
        visible = problem is not None and problem != self._dismissed
        if problem is not None:
            title, hint = self._words.tongue.core.problem(problem)
            self.title.setText(plain(title))
            self.hint.setText(plain(hint))
            self.hint.setVisible(bool(hint))
            self.act_button.setText(self._words.action(problem))
        self.setVisible(visible)

    def _dismiss(self) -> None:
        self._dismissed = self._shown
        self.hide()
        self.dismissed.emit()
