"""Four large numbers side by side, or two by two where the window is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from skep_gui.widgets.parts import Card, label, unbroken
from skep_gui.words.now import Figure

NARROW: Final = 660
"""Pixels; below this two stand in a row."""
COUNT: Final = 4


class FigureRow(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(16)
        self._cards = [FigureCard() for _ in range(COUNT)]
        self._columns = 0
        # else four in a row would hold the page at their width, and it could never become narrow
        self.setMinimumWidth(NARROW // 2)
        self._arrange(COUNT)

    def show_figures(self, figures: Sequence[Figure]) -> None:
        for card, figure in zip(self._cards, figures, strict=True):
            card.show_figure(figure)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if event.size().width() < NARROW else COUNT)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for place, card in enumerate(self._cards):
            self._grid.addWidget(card, place // columns, place % columns)
        for column in range(COUNT):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)


class FigureCard(Card):
    """A large number with what it is above and smaller lines below."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.value = label("", "soft", wrap=False), label("", "figure", wrap=False)
        self.below = label("", "soft")
        self.body.setSpacing(2)
        for each in (self.name, self.value, self.below):
            self.body.addWidget(each)
        self.body.addStretch(1)

    def show_figure(self, figure: Figure) -> None:
        self.name.setText(figure.label)
        _fit_text(self.value, figure.value)
        # each part on its own line: a card is too narrow for two, and a row of cards keeps its height
        self.below.setText(unbroken(figure.below.replace(" · ", "\n")))
        self.setToolTip(figure.explained)


def _fit_text(value: QLabel, text: str) -> None:
    """A name is no number: what is long is written smaller, so that it is not cut."""
    name = "figure" if len(text) <= 9 else "heading"  # noqa: PLR2004 - characters that fit a quarter of the page
    if value.objectName() != name:
        value.setObjectName(name)
        value.style().unpolish(value)
        value.style().polish(value)
    value.setWordWrap(name == "heading")
    value.setText(text)
