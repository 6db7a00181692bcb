"""A box to choose one of a few from, with an arrow of our own: a style sheet either frames Qt's arrow or drops it."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QComboBox

from skep_gui.widgets import theme


class ChoiceBox(QComboBox):
    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("choice")

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.current().soft), 1.5))
        right, middle = self.width() - 14.0, self.height() / 2
        painter.drawPolyline(
            [QPointF(right - 4, middle - 2), QPointF(right, middle + 2), QPointF(right + 4, middle - 2)]
        )
        painter.end()
