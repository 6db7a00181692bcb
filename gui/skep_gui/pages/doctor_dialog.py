"""The dialog of the connection doctor: one row a check, as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QWidget

from skep.core.findings import Finding
from skep.core.text import Problem
from skep_gui.widgets.parts import Card, Scrolled, breakable, button, column, emptied, grid, label, row, toned, unbroken
from skep_gui.words.doctor import Doctor, Row

SIZE: Final = (720, 520)


class DoctorDialog(QDialog):
    wanted = Signal()
    """Check again."""

    def __init__(self, words: Doctor, project: str, parent: QWidget | None = None) -> None:
        """`project` is its title, "" for this computer only."""
        super().__init__(parent)
        self.setObjectName("page")
        self._words, self._findings = words, list[Finding]()
        self.setWindowTitle(words.title(project))
        self.resize(*SIZE)
        self.said = label("", wrap=True)
        self.rows = grid(16, 12, wide=2)
        inside = QWidget()
        whole = column(Card("", self.rows), None)
        whole.setContentsMargins(0, 0, 8, 0)
        inside.setLayout(whole)
        scrolled = Scrolled(inside)
        self.copy = button(self.tr("Copy"), clicked=self._copy)
        self.again = button(self.tr("Check again"), clicked=self.wanted)
        self.leave = button(self.tr("Close"), "primary", self.reject)
        title = label(breakable(self.windowTitle()), "title")
        layout = column(title, self.said, scrolled, row(self.copy, self.again, None, self.leave), spacing=12)
        layout.setContentsMargins(24, 24, 24, 24)
        layout.setStretchFactor(scrolled, 1)
        self.setLayout(layout)
        self.begin()

    def begin(self) -> None:
        """Forget what was found; the checks have begun."""
        self._findings = []
        self._say(self._words.checking(), "soft")
        self._show()
        for each in (self.copy, self.again):
            each.setEnabled(False)

    def add(self, finding: Finding) -> None:
        self._findings.append(finding)
        self._show()

    def end(self) -> None:
        """All checks have ended."""
        self._say(*self._words.summary(self._findings))
        for each in (self.copy, self.again):
            each.setEnabled(True)

    def refuse(self, problem: Problem) -> None:
        """The checks could not begin."""
        self._say(self._words.tongue.told(problem), "problem")
        self.again.setEnabled(True)

    def _say(self, text: str, tone: str) -> None:
        self.said.setText(breakable(text))
        toned(self.said, tone)

    def _show(self) -> None:
        emptied(self.rows)
        self._fill(self._words.rows(self._findings))

    def _fill(self, rows: Sequence[Row]) -> None:
        top = Qt.AlignmentFlag.AlignTop
        for place, each in enumerate(rows):
            self.rows.addWidget(label(each.state, wrap=False, tone=str(each.tone)), place, 0, top)
            self.rows.addWidget(label(each.title, "heading", wrap=False), place, 1, top)
            found = label(unbroken(breakable(each.found)), select=True)
            advice = [label(unbroken(breakable(each.advice)), "soft", select=True)] if each.advice else []
            self.rows.addLayout(column(found, *advice, spacing=2), place, 2)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._words.as_text(self.windowTitle(), self._findings))
        self._say(self.tr("Copied."), "soft")
