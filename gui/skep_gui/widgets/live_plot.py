"""Ten minutes of samples a second and share, drawn by hand: two lines need no library, and hidden it costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QLocale, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from skep_gui.widgets import theme
from skep_gui.widgets.history import SPAN, Point
from skep_gui.words.stats import nice_top

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 48, 30, 24
_GAP: Final = 15.0
"""Seconds without a report after which a line is broken, not drawn across."""
_LINES: Final = 4
"""Parts of the height between which a faint line runs."""


class LivePlot(QWidget):
    """Two lines over one time: samples a second on the left axis, share in percent on the right one."""

    def __init__(self) -> None:
        super().__init__()
        self._points: Sequence[Point] = ()
        self._now = 0.0
        self.setFixedHeight(220)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Samples a second and share, over ten minutes"))

    def show_points(self, points: Sequence[Point], now: float) -> None:
        """`now` is wall clock seconds. Qt draws only what can be seen."""
        self._points, self._now = points, now
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = theme.current()
        area = QRectF(_LEFT, _TOP, self.width() - _LEFT - _RIGHT, self.height() - _TOP - _BOTTOM)
        self._legend(painter, colours)
        if len(self._points) < 2:  # noqa: PLR2004 - a line has two ends
            painter.setPen(QColor(colours.soft))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self.tr("The first minutes of training draw this."))
        else:
            top = nice_top(max(point.samples_per_second for point in self._points))
            self._axes(painter, area, top, colours)
            self._line(painter, area, lambda point: point.share, QColor(colours.paused))
            self._line(painter, area, lambda point: point.samples_per_second / top, QColor(colours.fill))
        painter.end()

    def _legend(self, painter: QPainter, colours: theme.Colours) -> None:
        line, flag = QRectF(0, 0, self.width(), 20), Qt.AlignmentFlag
        left, right = self.tr("samples a second"), self.tr("share")
        painter.setPen(QColor(colours.soft))
        painter.drawText(line.adjusted(14, 0, 0, 0), flag.AlignLeft | flag.AlignVCenter, left)
        painter.drawText(line.adjusted(0, 0, -14, 0), flag.AlignRight | flag.AlignVCenter, right)
        painter.setPen(Qt.PenStyle.NoPen)
        for x, colour in ((4.0, colours.fill), (self.width() - 4.0, colours.paused)):
            painter.setBrush(QColor(colour))
            painter.drawEllipse(QPointF(x, 10.0), 4.0, 4.0)

    def _axes(self, painter: QPainter, area: QRectF, top: float, colours: theme.Colours) -> None:
        flag = Qt.AlignmentFlag
        for step in range(_LINES + 1):
            part = step / _LINES
            y = area.bottom() - part * area.height()
            painter.setPen(QPen(QColor(colours.line), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(colours.soft))
            painter.drawText(QRectF(0, y - 9, _LEFT - 8, 18), flag.AlignRight | flag.AlignVCenter, _short(top * part))
            share = QRectF(area.right() + 8, y - 9, _RIGHT - 8, 18)
            painter.drawText(share, flag.AlignLeft | flag.AlignVCenter, f"{part * 100:.0f}\u2009%")
        below = QRectF(area.left(), area.bottom() + 6, area.width(), 18)
        painter.drawText(below, flag.AlignLeft, self.tr("10 minutes ago"))
        painter.drawText(below, flag.AlignRight, self.tr("now"))

    def _line(self, painter: QPainter, area: QRectF, height: Callable[[Point], float], colour: QColor) -> None:
        painter.setPen(QPen(colour, 2))
        piece, before = QPolygonF(), -math.inf
        for point in self._points:
            if point.at - before > _GAP and not piece.isEmpty():
                painter.drawPolyline(piece)
                piece = QPolygonF()
            x = area.right() + (point.at - self._now) / SPAN * area.width()
            y = area.bottom() - min(1.0, max(0.0, height(point))) * area.height()
            piece.append(QPointF(max(area.left(), x), y))
            before = point.at
        painter.drawPolyline(piece)


def _short(value: float) -> str:
    return f"{value:g}".replace(".", QLocale().decimalPoint())
