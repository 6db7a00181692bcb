"""The page Stats: what this computer contributed, for each project and in all, why some was lost; export as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QGridLayout, QVBoxLayout

from skep.cli import words as numbers
from skep_gui.figure_row import FigureRow
from skep_gui.parts import Card, Page, button, emptied, label
from skep_gui.present.now import Figure
from skep_gui.present.stats import Record, Stats, confirmed_part


class StatsPage(Page):
    export_wanted = Signal(str)
    projects_wanted = Signal()

    def __init__(self, words: Stats) -> None:
        super().__init__(self.tr("Stats"))
        self._words = words
        self.record: Record | None = None
        self.export = button(self.tr("Export …"))
        self.export.clicked.connect(self._export)
        self.top.addWidget(self.export)
        self.said = label("", "soft")
        self.said.hide()
        self.body.addWidget(self.said)
        self.empty = self._empty_state()
        self.body.addWidget(self.empty)
        self.figures = FigureRow()
        self.body.addWidget(self.figures)
        self.table, self.reasons = Card(self.tr("Projects")), Card(self.tr("Why samples were lost"))
        self._grid, self._reasons = QGridLayout(), QVBoxLayout()
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self.table.body.addLayout(self._grid)
        self.reasons.body.addLayout(self._reasons)
        for each in (self.table, self.reasons):
            self.body.addWidget(each)
        self.body.addWidget(label(self.tr("Hours and energy are not shown: nothing measures them yet."), "soft"))
        self.body.addStretch(1)
        self.show_record(Record(), {})

    def _empty_state(self) -> Card:
        card = Card(self.tr("Nothing contributed yet"))
        text = self.tr("Once you are in a project, this page shows what your computer gave and what became of it.")
        card.body.addWidget(label(text, "soft"))
        choose = button(self.tr("Choose a project"), "primary")
        choose.clicked.connect(self.projects_wanted)
        card.body.addWidget(choose)
        return card

    def show_record(self, record: Record, titles: Mapping[str, str]) -> None:
        """`titles` are those of the known projects, by id."""
        if record == self.record:
            return
        self.record = record
        empty = self._words.is_empty(record)
        self.empty.setVisible(empty)
        for widget in (self.figures, self.table):
            widget.setVisible(not empty)
        self.export.setEnabled(not empty)
        self.figures.show_figures(self._totals(record))
        self._show_table(record, titles)
        self._show_reasons(record)

    def _totals(self, record: Record) -> Sequence[Figure]:
        totals = record.totals()
        pending = self.tr("Samples whose round is not over yet.")
        return (
            Figure(
                self.tr("Samples confirmed"),
                numbers.number(totals.confirmed.samples),
                self._epochs(totals.confirmed.contributions),
            ),
            Figure(self.tr("Confirmed share"), numbers.percent(confirmed_part(totals)), self.tr("of what is settled")),
            Figure(
                self.tr("Pending"),
                numbers.number(totals.pending.samples),
                self._epochs(totals.pending.contributions),
                pending,
            ),
            Figure(self.tr("Lost"), numbers.number(totals.lost.samples), self._epochs(totals.lost.contributions)),
        )

    def _epochs(self, count: int) -> str:
        return self.tr("in 1 epoch") if count == 1 else self.tr("in %1 epochs").replace("%1", numbers.number(count))

    def _show_table(self, record: Record, titles: Mapping[str, str]) -> None:
        emptied(self._grid)
        heads = ("", self.tr("Confirmed"), self.tr("Pending"), self.tr("Lost"), self.tr("Confirmed share"))
        for column, head in enumerate(heads):
            self._grid.addWidget(label(head, "soft", wrap=False), 0, column)
        for line, shown in enumerate(self._words.rows(record, titles), start=1):
            cells = (shown.project, shown.confirmed, shown.pending, shown.lost, shown.share)
            for column, text in enumerate(cells):
                self._grid.addWidget(label(text, wrap=column == 0), line, column)
        self._grid.setColumnStretch(0, 1)

    def _show_reasons(self, record: Record) -> None:
        emptied(self._reasons)
        reasons = self._words.reasons(record)
        self.reasons.setVisible(bool(reasons))
        for reason in reasons:
            self._reasons.addWidget(label(self._words.reason_line(reason)))

    def say(self, text: str) -> None:
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def _export(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Export contributions"), "skep.csv", self.tr("Tables (*.csv)")
        )
        if path:
            self.export_wanted.emit(path)
