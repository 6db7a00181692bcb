"""A day's timeline as a card: a strip of 24 hours, and how long each rule held, with a way to its setting."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from skep_gui.widgets.cell_strip import CellStrip, colour_of
from skep_gui.widgets.parts import Card, button, emptied, label, row
from skep_gui.words.day import LONGEST_BACK, Day, RuleTime
from skep_gui.words.speaker import filled
from skep_gui.words.stats import Record

ROW: Final = 28
"""Pixels at least, so that rows with a button and without stand alike."""


class DayCard(Card):
    setting_wanted = Signal(str)
    back_wanted = Signal(int)
    """The timeline of the day so many days ago."""

    def __init__(self, words: Day) -> None:
        super().__init__()
        self._words = words
        self._back = 0
        self._keys: list[str] = []
        self._shown: list[RuleTime] | None = None
        self.title = label("", "heading")
        self.earlier, self.later = button("←"), button("→")
        self.earlier.setAccessibleName(self.tr("The day before"))
        self.later.setAccessibleName(self.tr("The day after"))
        self.earlier.clicked.connect(lambda: self.back_wanted.emit(self._back + 1))
        self.later.clicked.connect(lambda: self.back_wanted.emit(self._back - 1))
        head = row(self.title, self.earlier, self.later)
        head.setStretchFactor(self.title, 1)
        self.body.addLayout(head)
        self.strip = CellStrip(104, touching=True)
        self.strip.setAccessibleName(self.tr("Share of this computer over the day"))
        self.strip.chosen.connect(self._chosen)
        self.strip.pointed.connect(self._pointed)
        self.none = label("", "soft")
        self.said = label("", "soft")
        self.said.setMinimumHeight(18)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(3, 1)
        for each in (self.none, self.strip, self.said):
            self.body.addWidget(each)
        self.body.addLayout(self._grid)
        self.reaction = label("", "soft")
        self.body.addWidget(self.reaction)

    def show_record(self, record: Record) -> None:
        self._back = record.asked.back
        self.title.setText(self._words.title(record))
        self.earlier.setEnabled(self._back < LONGEST_BACK)
        self.later.setEnabled(self._back > 0)
        chart = self._words.chart(record)
        self._keys = [cell.key for cell in chart.cells]
        self.strip.show_chart(chart)
        found = self._words.rules(record)
        self.none.setText(self._words.none(record))
        self.none.setVisible(not found)
        self.said.setVisible(bool(found))
        self._pointed("")
        self._show_rules(found)
        self.reaction.setText(self._words.said(record.reaction))
        self.reaction.setVisible(bool(record.reaction) and self._back == 0)

    def _show_rules(self, found: list[RuleTime]) -> None:
        if found == self._shown:
            return
        self._shown = found
        emptied(self._grid)
        for line, each in enumerate(found):
            self._grid.setRowMinimumHeight(line, ROW)
            self._grid.addWidget(Dot(each.tone), line, 0)
            self._grid.addWidget(label(each.name, wrap=False), line, 1)
            self._grid.addWidget(label(each.time, wrap=False), line, 2)
            self._grid.addWidget(label(each.sentence, "soft"), line, 3)
            if each.key:
                link = button(self.tr("Setting"), "flat")
                link.setAccessibleName(filled(self.tr("Setting of the rule: %1"), each.name))
                link.clicked.connect(lambda _=False, key=each.key: self.setting_wanted.emit(key))
                self._grid.addWidget(link, line, 4)

    def _chosen(self, place: int) -> None:
        if key := self._keys[place]:
            self.setting_wanted.emit(key)

    def _pointed(self, name: str) -> None:
        self.said.setText(
            name or self.tr("Height is the share. Point at a stretch to see why; click it for its setting.")
        )


class Dot(QWidget):
    """The colour of a rule; its name stands beside it."""

    def __init__(self, tone: str) -> None:
        super().__init__()
        self._tone = tone
        self.setFixedSize(10, 18)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, 4, 10, 10, colour_of(self._tone))
        painter.end()
