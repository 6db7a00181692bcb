"""The page Stats: what this computer gave and what became of it, in all, over time and for each project; a day's why; CSV.

A function of the record it is given; what of the ledger it wants to see leaves as a signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QGridLayout, QLabel, QVBoxLayout

from skep.core.record.usage import Unit
from skep.core.settings.hours import local
from skep_gui.pages.day_card import DayCard
from skep_gui.pages.page_kind import PageKind, Requests
from skep_gui.widgets.cell_strip import CellStrip
from skep_gui.widgets.choice_box import ChoiceBox
from skep_gui.widgets.figure_row import FigureRow
from skep_gui.widgets.parts import Card, Page, breakable, button, emptied, label, row
from skep_gui.words.day import LONGEST_BACK, Day
from skep_gui.words.stats import Asked, Measure, Record, Stats
from skep_gui.words.translation import Translation

AGAIN = 60_000
"""Milliseconds after which a page that is seen asks for the ledger anew."""


class StatsPage(Page):
    export_wanted = Signal(str)
    projects_wanted = Signal()
    setting_wanted = Signal(str)
    wanted = Signal()
    """Read the ledger again, for what `asked` says."""

    def __init__(self, words: Stats, day: Day) -> None:
        super().__init__(self.tr("Stats"))
        self._words, self._day_words = words, day
        self.asked = Asked()
        self.record = Record()
        self._titles: Mapping[str, str] = {}
        self.export = button(self.tr("Export …"))
        self.export.clicked.connect(self._export)
        self.export.setEnabled(False)
        self.top.addWidget(self.export)
        self.said = label("", "soft")
        self.said.hide()
        self.body.addWidget(self.said)
        self._again = QTimer(self, interval=AGAIN)
        self._again.timeout.connect(self.wanted)
        self._built = False

    def _build(self) -> None:
        """What it consists of; made when it is first seen."""
        self._built = True
        self.empty = self._empty_state()
        self.figures = FigureRow()
        self.bars_card = self._bars_card()
        self.day = DayCard(self._day_words)
        self.day.setting_wanted.connect(self.setting_wanted)
        self.day.back_wanted.connect(lambda back: self._ask(replace(self.asked, back=back)))
        self.table, self.reasons = Card(self.tr("Projects")), Card(self.tr("Why samples were lost"))
        self._grid, self._reasons = QGridLayout(), QVBoxLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self.table.body.addLayout(self._grid)
        self.reasons.body.addLayout(self._reasons)
        for each in (self.empty, self.figures, self.bars_card, self.day, self.table, self.reasons):
            self.body.addWidget(each)
        self.body.addStretch(1)

    def _empty_state(self) -> Card:
        card = Card(self.tr("Nothing contributed yet"))
        text = self.tr("Once you are in a project, this page shows what your computer gave and what became of it.")
        card.body.addWidget(label(text, "soft"))
        choose = button(self.tr("Choose a project"), "primary")
        choose.clicked.connect(self.projects_wanted)
        card.body.addWidget(choose)
        return card

    def _bars_card(self) -> Card:
        card = Card()
        self.measure, self.unit = ChoiceBox(), ChoiceBox()
        for measure, text in self._words.measures().items():
            self.measure.addItem(text, str(measure))
        for unit, text in self._words.units().items():
            self.unit.addItem(text, str(unit))
        self.unit.setCurrentIndex(list(Unit).index(self.asked.unit))
        self.measure.setAccessibleName(self.tr("What the bars show"))
        self.unit.setAccessibleName(self.tr("Length of time of a bar"))
        self.measure.currentIndexChanged.connect(self._show_bars)
        self.unit.currentIndexChanged.connect(lambda _: self._ask(replace(self.asked, unit=self._chosen_unit())))
        self.bars = CellStrip(172, touching=False)
        self.bars.setAccessibleName(self.tr("What was contributed over time"))
        self.bars.chosen.connect(self._open_day)
        self.bars.pointed.connect(self._point)
        self.pointed = label("", "soft")
        card.body.addLayout(row(label(self.tr("Over time"), "heading", wrap=False), None, self.measure, self.unit))
        card.body.addWidget(self.bars)
        card.body.addWidget(self.pointed)
        return card

    def _chosen_unit(self) -> Unit:
        return list(Unit)[self.unit.currentIndex()]

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._built:
            self._build()
            self._show()
        self._again.start()
        self.wanted.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._again.stop()

    def _ask(self, asked: Asked) -> None:
        self.asked = asked
        self.wanted.emit()

    def show_record(self, record: Record, titles: Mapping[str, str]) -> None:
        """`titles` are those of the known projects, by id."""
        if record == self.record and titles == self._titles:
            return
        self.record, self._titles = record, titles
        self.export.setEnabled(not self._words.is_empty(record))
        if self._built:
            self._show()

    def _show(self) -> None:
        record, titles = self.record, self._titles
        empty = self._words.is_empty(record)
        self.empty.setVisible(empty)
        for widget in (self.figures, self.bars_card, self.day, self.table):
            widget.setVisible(not empty)
        self.figures.show_figures(self._words.figures(record))
        self._show_bars()
        self.day.show_record(record)
        self._show_table(record, titles)
        self._show_reasons(record)

    def _show_bars(self) -> None:
        measure = list(Measure)[self.measure.currentIndex()]
        self.bars.show_chart(self._words.bars(self.record, measure))
        self._point("")

    def _point(self, name: str) -> None:
        text = self.tr(
            "Grey on top is what was lost. Point at a bar for its figures; click it for that day's timeline."
        )
        self.pointed.setText(name or text)

    def _open_day(self, place: int) -> None:
        """The timeline of the day in which that bar begins."""
        begin, today = (local(at, self.record.zone).date() for at in (self.record.past[place].begin, self.record.now))
        self._ask(replace(self.asked, back=min(LONGEST_BACK, max(0, (today - begin).days))))
        self.ensureWidgetVisible(self.day, 0, 24)

    def _show_table(self, record: Record, titles: Mapping[str, str]) -> None:
        emptied(self._grid)
        for column, (head, meaning) in enumerate(self._words.heads()):
            made = label(head, "soft")
            made.setToolTip(meaning)
            self._put(made, 0, column)
        for line, shown in enumerate(self._words.rows(record, titles), start=1):
            for column, text in enumerate(shown.cells):
                made = label(breakable(text), wrap=column == 0)
                if column == 0:
                    made.setAccessibleName(shown.explained)
                self._put(made, line, column)
        self._grid.setColumnStretch(0, 1)

    def _put(self, made: QLabel, line: int, column: int) -> None:
        side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
        made.setAlignment(side | Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(made, line, column)

    def _show_reasons(self, record: Record) -> None:
        emptied(self._reasons)
        reasons = self._words.reasons(record)
        self.reasons.setVisible(bool(reasons))
        for reason in reasons:
            self._reasons.addWidget(label(reason))

    def say(self, text: str) -> None:
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def _export(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Export contributions"), "skep.csv", self.tr("Tables (*.csv)")
        )
        if path:
            self.export_wanted.emit(path)


def _make(translation: Translation) -> StatsPage:
    return StatsPage(translation.stats, translation.day)


def _connect(page: StatsPage, requests: Requests) -> None:
    page.export_wanted.connect(requests.export)
    page.wanted.connect(requests.read_record)
    page.setting_wanted.connect(requests.go_to_setting)
    page.projects_wanted.connect(requests.go_to_projects)


PAGE: Final = PageKind(_make, _connect)
