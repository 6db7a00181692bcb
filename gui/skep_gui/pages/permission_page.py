"""What a project downloads, sends and uses, shown before anything of it begins; Join is the one way on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QVBoxLayout

from skep_gui.widgets.parts import Card, Page, breakable, button, emptied, label, row, toned, unbroken
from skep_gui.words.projects import Permissions


class PermissionPage(Page):
    joined = Signal(str)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__("")
        self._id = ""
        self.back = button(self.tr("← Projects"), "flat")
        self.back.clicked.connect(self.closed)
        self.body.insertLayout(0, row(self.back, None))
        self.summary = label()
        self.body.addWidget(self.summary)
        self._lists = QVBoxLayout()
        self._lists.setSpacing(16)
        self.body.addLayout(self._lists)
        self.join = button(self.tr("Join"), "primary")
        self.join.clicked.connect(lambda: self.joined.emit(self._id))
        self.why_not = label("", "soft")
        self.body.addLayout(row(self.join, self.why_not))
        self.body.addStretch(1)

    def show_project(self, project_id: str, words: Permissions, *, free: bool) -> None:
        self._id = project_id
        self.title.setText(breakable(words.title))
        self.summary.setText(breakable(words.summary))
        emptied(self._lists)
        for remark in words.remarks:
            warning = label(breakable(remark))
            toned(warning, "gentle" if words.joinable else "problem")
            self._lists.addWidget(warning)
        lists = (
            (self.tr("It downloads"), words.downloads),
            (self.tr("It sends"), words.sends),
            (self.tr("It uses at most"), words.uses),
        )
        for heading, lines in lists:
            self._lists.addWidget(_list(heading, lines))
        self._lists.addWidget(_facts(self.tr("Who and what"), words.facts))
        self.join.setEnabled(words.joinable and free)
        self.why_not.setText(
            "" if free or not words.joinable else self.tr("Leave the other project first; one at a time.")
        )


def _list(heading: str, lines: Sequence[str]) -> Card:
    card = Card(heading)
    for line in lines:
        card.body.addLayout(_point(line))
    return card


def _point(text: str) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(8)
    dot = label("•", "soft", wrap=False)
    grid.addWidget(dot, 0, 0, Qt.AlignmentFlag.AlignTop)
    grid.addWidget(label(unbroken(breakable(text))), 0, 1)
    grid.setColumnStretch(1, 1)
    return grid


def _facts(heading: str, facts: Sequence[tuple[str, str]]) -> Card:
    card = Card(heading)
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    for line, (name, text) in enumerate(facts):
        grid.addWidget(label(name, "soft", wrap=False), line, 0)
        grid.addWidget(label(breakable(text), select=True), line, 1)
    grid.setColumnStretch(1, 1)
    card.body.addLayout(grid)
    return card
