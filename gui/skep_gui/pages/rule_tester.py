"""The card "What would happen if …": things to imagine, the sentence that would be said, and the way to its setting."""

from __future__ import annotations

from datetime import UTC, datetime

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QPushButton, QVBoxLayout

from skep.core.session.snapshot import Snapshot
from skep_gui.widgets.parts import Card, button, emptied, label, row
from skep_gui.words.now import RuleRow
from skep_gui.words.settings import Answer, RuleWords, without_opposite
from skep_gui.words.speaker import filled

NARROW = 620
"""Pixels; below this the boxes stand in one column."""


class RuleTester(Card):
    setting_wanted = Signal(str)

    def __init__(self, words: RuleWords) -> None:
        super().__init__(" ")
        self.heading.setText(self.tr("What would happen if …"))
        self._words = words
        self._snapshot, self._now = Snapshot(), 0.0
        self._shown: Answer | None = None
        self._columns = 0
        self.boxes: dict[str, QCheckBox] = {}
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(2)
        for word, text in words.cases().items():
            self.boxes[word] = box = QCheckBox(text)
            box.clicked.connect(lambda on, word=word: self._imagine(word, on=on))
        self._arrange(2)
        self.body.addLayout(self._grid)
        self.sentence = label("", "sentence")
        self.sentence.setContentsMargins(0, 8, 0, 0)
        self.body.addWidget(self.sentence)
        self._consequences = QVBoxLayout()
        self._consequences.setSpacing(4)
        self.body.addLayout(self._consequences)
        self._answer()

    def chosen(self) -> tuple[str, ...]:
        return tuple(word for word, box in self.boxes.items() if box.isChecked())

    def choose(self, words: tuple[str, ...]) -> None:
        for word, box in self.boxes.items():
            box.setChecked(word in words)
        self._answer()

    def show_snapshot(self, snapshot: Snapshot, now: float) -> None:
        """`now` is wall clock seconds. A changed setting changes the answer at once."""
        self._snapshot, self._now = snapshot, now
        if self.isVisible() and self.chosen():
            self._answer()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._answer()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(1 if event.size().width() < NARROW else 2)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for place, box in enumerate(self.boxes.values()):
            self._grid.addWidget(box, place // columns, place % columns)
        self._grid.setColumnStretch(1, 1 if columns > 1 else 0)
        self._grid.setColumnStretch(0, 1)

    def _imagine(self, word: str, *, on: bool) -> None:
        words = tuple(each for each in self.chosen() if each != word)
        self.choose((*without_opposite(words, word), word) if on else words)

    def _answer(self) -> None:
        zone = datetime.fromtimestamp(self._now, UTC).astimezone().tzinfo or UTC
        answer = self._words.answer(self._snapshot, self.chosen(), self._now, zone)
        if answer == self._shown:
            return
        self._shown = answer
        self.sentence.setText(answer.sentence)
        self.sentence.setObjectName("sentence" if answer.consequences else "soft")
        self.sentence.style().unpolish(self.sentence)
        self.sentence.style().polish(self.sentence)
        emptied(self._consequences)
        for place, each in enumerate(answer.consequences):
            share = label(each.share, wrap=False)
            share.setFixedWidth(56)
            line = row(share, self._sentence(each, first=place == 0))
            line.setStretch(1, 1)
            if each.key:
                line.addWidget(self._link(each))
            self._consequences.addLayout(line)
        for remark in answer.remarks:
            self._consequences.addWidget(label(remark, "soft"))

    def _sentence(self, each: RuleRow, *, first: bool) -> QLabel:
        made = label(each.sentence, "" if first else "soft")
        made.setToolTip(each.name)
        return made

    def _link(self, each: RuleRow) -> QPushButton:
        link = button(self.tr("Setting"), "flat")
        link.setAccessibleName(filled(self.tr("Setting of the rule: %1"), each.sentence))
        link.clicked.connect(lambda: self.setting_wanted.emit(each.key))
        return link
