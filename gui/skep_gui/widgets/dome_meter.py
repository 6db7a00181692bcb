"""The skep as a meter: its bands fill from below with the measured share, a fine line marks what is asked."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QWidget

_BANDS: Final = ((22.0, 44.0), (10.0, 68.0), (3.0, 82.0), (0.0, 88.0))
"""Left edge and width of each band on a grid of 88 x 76, from the top."""
_HEIGHT, _STEP, _DOOR = 16.0, 20.0, 22.0


class DomeMeter(QWidget):
    """Shares are 0..1; `measured` None where nothing was measured yet: then the bands are empty."""

    def __init__(self) -> None:
        super().__init__()
        self._asked, self._measured = 0.0, 0.0
        self._said = ""
        self.setFixedSize(QSize(128, 112))

    def show_shares(self, asked: float, measured: float | None, said: str) -> None:
        """`said` is what a screen reader says of it."""
        if (asked, measured or 0.0, said) == (self._asked, self._measured, self._said):
            return
        self._asked, self._measured, self._said = asked, measured or 0.0, said
        self.setAccessibleName(said)
        self.setToolTip(said)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        scale = min(self.width() / 96, self.height() / 84)
        painter.scale(scale, scale)
        painter.translate(4, 4)
        for index in range(len(_BANDS)):
            self._paint_band(painter, index)
        painter.end()

    def _paint_band(self, painter: QPainter, index: int) -> None:
        colours = self.palette()
        left, width = _BANDS[index]
        box = QRectF(left, index * _STEP, width, _HEIGHT)
        shape = QPainterPath()
        shape.addRoundedRect(box, _HEIGHT / 2, _HEIGHT / 2)
        shape -= _door()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.color(QPalette.ColorRole.Mid))
        painter.drawPath(shape)
        # a band is a quarter of the share, and fills from its left
        part = min(1.0, max(0.0, self._measured * 4 - (3 - index)))
        filled = QPainterPath()
        filled.addRect(QRectF(left, box.top(), width * part, _HEIGHT))
        painter.setBrush(colours.color(QPalette.ColorRole.Highlight))
        painter.drawPath(shape & filled)
        asked = self._asked * 4 - (3 - index)
        if 0 < asked <= 1 and self._asked < 1:
            where = left + width * asked
            painter.setPen(QPen(colours.color(QPalette.ColorRole.Text), 2.0))
            painter.drawLine(int(where), int(box.top() - 2), int(where), int(box.bottom() + 2))


def _door() -> QPainterPath:
    door = QPainterPath()
    top, left = 2 * _STEP + 5, (88 - _DOOR) / 2
    door.addRoundedRect(QRectF(left, top, _DOOR, 60), _DOOR / 2, _DOOR / 2)
    return door
