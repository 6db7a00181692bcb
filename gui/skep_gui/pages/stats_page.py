"""The page Stats: contributions in total, over time and by project; a day's timeline with its reasons; CSV export.

A function of a `Record`; requests for other parts of the ledger leave as signals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QVBoxLayout, QWidget

from skep.core.record.usage import Unit
from skep.core.settings.hours import local
from skep_gui.pages.registry import PageKind, Requests
from skep_gui.widgets.charts import CellStrip, colour_of
from skep_gui.widgets.parts import Card, ChoiceBox, Page, breakable, button, emptied, grid, label, row
from skep_gui.widgets.rows import FigureRow, setting_link
from skep_gui.words.day import LONGEST_BACK, Day, RuleTime
from skep_gui.words.stats import Asked, Measure, Record
from skep_gui.words.translation import Translation

AGAIN = 60_000
"""Interval in milliseconds at which the visible page reads the ledger again."""
ROW: Final = 28
"""Minimum height of a rule's line in pixels, so that lines with and without a button are equally high."""


class StatsPage(Page):
    export_wanted = Signal(str)
    projects_wanted = Signal()
    setting_wanted = Signal(str)
    wanted = Signal()
    """Read the ledger for `asked`."""

    def __init__(self, translation: Translation) -> None:
        super().__init__(self.tr("Stats"))
        self._words, self._day_words = translation.stats, translation.day
        self.asked = Asked()
        self.record = Record()
        self._titles: Mapping[str, str] = {}
        self.export = button(self.tr("Export …"), clicked=self._export)
        self.export.setEnabled(False)
        self.top.addWidget(self.export)
        self.said = label("", "soft")
        self.said.hide()
        self.add(self.said)
        self._again = QTimer(self, interval=AGAIN)
        self._again.timeout.connect(self.wanted)
        self._built = False

    def connect_to(self, requests: Requests) -> None:
        self.export_wanted.connect(requests.export)
        self.wanted.connect(requests.read_record)
        self.setting_wanted.connect(requests.go_to_setting)
        self.projects_wanted.connect(requests.go_to_projects)

    def _build(self) -> None:
        """Make the widgets, when the page is first shown."""
        self._built = True
        self.empty = self._empty_state()
        self.figures = FigureRow()
        self.bars_card = self._bars_card()
        self.day = DayCard(self._day_words)
        self.day.setting_wanted.connect(self.setting_wanted)
        self.day.back_wanted.connect(lambda back: self._ask(replace(self.asked, back=back)))
        self._grid, self._reasons = grid(16, 8, wide=0), QVBoxLayout()
        self.table = Card(self.tr("Projects"), self._grid)
        self.reasons = Card(self.tr("Why samples were lost"), self._reasons)
        self.add(self.empty, self.figures, self.bars_card, self.day, self.table, self.reasons, None)

    def _empty_state(self) -> Card:
        text = self.tr("When you are in a project, this page shows what your computer contributed.")
        choose = button(self.tr("Choose a project"), "primary", self.projects_wanted)
        return Card(self.tr("Nothing contributed yet"), label(text, "soft"), choose)

    def _bars_card(self) -> Card:
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
        head = row(label(self.tr("Over time"), "heading", wrap=False), None, self.measure, self.unit)
        return Card("", head, self.bars, self.pointed)

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
        """`titles`: those of the known projects, by id."""
        if record == self.record and titles == self._titles:
            return
        self.record, self._titles = record, titles
        self.export.setEnabled(not self._words.is_empty(record))
        if self._built:
            self._show()

    def _show(self) -> None:
        record = self.record
        empty = self._words.is_empty(record)
        self.empty.setVisible(empty)
        for widget in (self.figures, self.bars_card, self.day, self.table):
            widget.setVisible(not empty)
        self.figures.show_figures(self._words.figures(record))
        self._show_bars()
        self.day.show_record(record)
        self._show_table()
        self._show_reasons()

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
        """Show the timeline of the day in which that bar begins."""
        begin, today = (local(at, self.record.zone).date() for at in (self.record.past[place].begin, self.record.now))
        self._ask(replace(self.asked, back=min(LONGEST_BACK, max(0, (today - begin).days))))
        self.ensureWidgetVisible(self.day, 0, 24)

    def _show_table(self) -> None:
        emptied(self._grid)
        for column, (head, meaning) in enumerate(self._words.heads()):
            made = label(head, "soft")
            made.setToolTip(meaning)
            self._put(made, 0, column)
        for line, shown in enumerate(self._words.rows(self.record, self._titles), start=1):
            for column, text in enumerate(shown.cells):
                made = label(breakable(text), wrap=column == 0)
                if column == 0:
                    made.setAccessibleName(shown.explained)
                self._put(made, line, column)

    def _put(self, made: QLabel, line: int, column: int) -> None:
        side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
        made.setAlignment(side | Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(made, line, column)

    def _show_reasons(self) -> None:
        emptied(self._reasons)
        reasons = self._words.reasons(self.record)
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


class DayCard(Card):
    setting_wanted = Signal(str)
    back_wanted = Signal(int)
    """Show the timeline of the day that many days ago."""

    def __init__(self, words: Day) -> None:
        super().__init__()
        self._words = words
        self._back = 0
        self._keys: list[str] = []
        self._shown: list[RuleTime] | None = None
        self.title = label("", "heading")
        self.earlier = button("←", clicked=lambda: self.back_wanted.emit(self._back + 1))
        self.later = button("→", clicked=lambda: self.back_wanted.emit(self._back - 1))
        self.earlier.setAccessibleName(self.tr("The day before"))
        self.later.setAccessibleName(self.tr("The day after"))
        head = row(self.title, self.earlier, self.later)
        head.setStretch(0, 1)
        self.strip = CellStrip(104, touching=True)
        self.strip.setAccessibleName(self.tr("Share of this computer over the day"))
        self.strip.chosen.connect(self._chosen)
        self.strip.pointed.connect(self._pointed)
        self.none = label("", "soft")
        self.said = label("", "soft")
        self.said.setMinimumHeight(18)
        self._grid = grid(16, 4, wide=3)
        self.reaction = label("", "soft")
        self.add(head, self.none, self.strip, self.said, self._grid, self.reaction)

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
                self._grid.addWidget(self._link(each), line, 4)

    def _link(self, rule: RuleTime) -> QPushButton:
        return setting_link(rule.name, lambda: self.setting_wanted.emit(rule.key))

    def _chosen(self, place: int) -> None:
        if key := self._keys[place]:
            self.setting_wanted.emit(key)

    def _pointed(self, name: str) -> None:
        self.said.setText(
            name or self.tr("Height is the share. Point at a stretch to see why; click it for its setting.")
        )


class Dot(QWidget):
    """The colour of a rule, beside its name."""

    def __init__(self, tone: str) -> None:
        super().__init__()
        self._tone = tone
        self.setFixedSize(10, 18)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, 4, 10, 10, colour_of(self._tone))
        painter.end()


PAGE: Final = PageKind(StatsPage, StatsPage.connect_to)
