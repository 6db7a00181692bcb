"""Widgets with their own painting: the share meter, ten minutes of plots, bars to point at. Nothing is drawn while
hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QLocale, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QEnterEvent,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from skep.language import units
from skep_gui.widgets import theme
from skep_gui.words.now import SPAN, Point
from skep_gui.words.stats import Cell, Chart, nice_top

_BANDS: Final = ((22.0, 44.0), (10.0, 68.0), (3.0, 82.0), (0.0, 88.0))
"""Left edge and width of each band on a grid of 88 x 76, from the top."""
_HEIGHT, _STEP, _DOOR = 16.0, 20.0, 22.0


class DomeMeter(QWidget):
    """Shares are 0..1; `measured` is None before the first measurement, and then the bands are empty."""

    def __init__(self) -> None:
        super().__init__()
        self._asked, self._measured = 0.0, 0.0
        self._said = ""
        self.setFixedSize(QSize(128, 112))

    def show_shares(self, asked: float, measured: float | None, said: str) -> None:
        """`said` is the text for screen readers."""
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
        # a band stands for a quarter of the share, and fills from the left
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


_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 48, 30, 24
_GAP: Final = 15.0
"""Seconds without a report after which the line is interrupted instead of connected."""
_PLOT_INTERVALS: Final = 4
"""How many equal intervals the grid lines divide the plot's height into; there is one line more."""


class LivePlot(QWidget):
    """Two lines over one time axis: samples a second on the left axis, share in percent on the right one."""

    def __init__(self) -> None:
        super().__init__()
        self._points: Sequence[Point] = ()
        self._now = 0.0
        self.setFixedHeight(220)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Samples a second and share, over ten minutes"))

    def show_points(self, points: Sequence[Point], now: float) -> None:
        """`now` is wall clock seconds. Qt paints only what is visible."""
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
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self.tr("Shown after the first minutes of training."))
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
        for step in range(_PLOT_INTERVALS + 1):
            part = step / _PLOT_INTERVALS
            y = area.bottom() - part * area.height()
            painter.setPen(QPen(QColor(colours.line), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(colours.soft))
            rate = QRectF(0, y - 9, _LEFT - 8, 18)
            painter.drawText(rate, flag.AlignRight | flag.AlignVCenter, axis_number(top * part))
            share = QRectF(area.right() + 8, y - 9, _RIGHT - 8, 18)
            painter.drawText(share, flag.AlignLeft | flag.AlignVCenter, units.percent(part))
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


BELOW: Final = 22
AXIS: Final = 52
_STRIP_INTERVALS: Final = 2
"""As _PLOT_INTERVALS, for a strip of bars with an axis."""
_WIDEST: Final = 36
"""Maximum width of a separate bar in pixels; those of a timeline touch."""
_FAINT: Final = 90
"""Opacity of 255 for bars without a rule as the reason."""
_STEPS: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


def colour_of(tone: str) -> QColor:
    colours = theme.current()
    named = {"training": colours.fill, "you": colours.paused, "machine": colours.machine, "schedule": colours.well}
    if tone in named:
        return QColor(named[tone])
    faint = QColor(colours.soft)
    faint.setAlpha(_FAINT)
    return faint


class CellStrip(QWidget):
    chosen = Signal(int)
    """The number of the bar that was clicked, or selected with Enter."""
    pointed = Signal(str)
    """The name of the bar under the pointer or with the focus; "" when there is none."""

    def __init__(self, height: int, *, touching: bool) -> None:
        """`touching` bars use their full width, as in a timeline."""
        super().__init__()
        self.touching = touching
        self.buttons: list[CellButton] = []
        self._chart: Chart | None = None
        self.setFixedHeight(height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_chart(self, chart: Chart) -> None:
        if chart == self._chart:
            return
        self._chart = chart
        focused = next((place for place, each in enumerate(self.buttons) if each.hasFocus()), None)
        for button in self.buttons[len(chart.cells) :]:
            button.hide()
            button.deleteLater()
        self.buttons = self.buttons[: len(chart.cells)]
        while len(self.buttons) < len(chart.cells):
            self.buttons.append(CellButton(self, len(self.buttons)))
        for button, cell in zip(self.buttons, chart.cells, strict=True):
            button.show_cell(cell)
        if self.buttons:
            self._stop_at(self.buttons[-1 if focused is None else min(focused, len(self.buttons) - 1)])
        self._arrange()
        self.update()

    def area(self) -> QRectF:
        left = AXIS if self._chart is not None and self._chart.top else 0
        return QRectF(left, 6, max(1, self.width() - left), self.height() - BELOW - 6)

    def walk(self, button: CellButton, key: int) -> bool:
        """Move the focus with an arrow key, Home or End."""
        place, last = self.buttons.index(button), len(self.buttons) - 1
        step = _STEPS.get(Qt.Key(key))
        if step is not None:
            target = min(last, max(0, place + step))
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            target = 0 if key == Qt.Key.Key_Home else last
        else:
            return False
        self._stop_at(self.buttons[target])
        self.buttons[target].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def _stop_at(self, button: CellButton) -> None:
        for each in self.buttons:
            each.setFocusPolicy(Qt.FocusPolicy.StrongFocus if each is button else Qt.FocusPolicy.ClickFocus)

    def _arrange(self) -> None:
        area = self.area()
        for button in self.buttons:
            left = round(area.left() + button.cell.left * area.width())
            right = round(area.left() + (button.cell.left + button.cell.width) * area.width())
            button.setGeometry(left, round(area.top()), max(1, right - left), round(area.height()))
            button.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._chart is None:
            return
        painter = QPainter(self)
        colours, area, flag = theme.current(), self.area(), Qt.AlignmentFlag
        for line in range(_STRIP_INTERVALS + 1 if self._chart.top else 1):
            y = area.bottom() - line / _STRIP_INTERVALS * area.height()
            painter.setPen(QPen(QColor(colours.line), 1))
            painter.drawLine(round(area.left()), round(y), round(area.right()), round(y))
            if self._chart.top:
                painter.setPen(QColor(colours.soft))
                value = axis_number(self._chart.top * line / _STRIP_INTERVALS)
                painter.drawText(QRectF(0, y - 9, AXIS - 8, 18), flag.AlignRight | flag.AlignVCenter, value)
        painter.setPen(QColor(colours.soft))
        for place, text in self._chart.labels:
            wide = painter.fontMetrics().horizontalAdvance(text) + 2
            left = min(max(area.left() + place * area.width() - wide / 2, area.left()), self.width() - wide)
            painter.drawText(QRectF(left, area.bottom() + 4, wide, 18), flag.AlignCenter, text)
        painter.end()


def axis_number(value: float) -> str:
    """A short label for the axis of a chart, with the decimal point of Qt's locale: 150000 -> "150 k"."""
    if value >= 1e6:  # noqa: PLR2004 - a million
        text = f"{value / 1e6:g}{units.THIN}M"
    elif value >= 1e4:  # noqa: PLR2004 - below it, the digits are as short
        text = f"{value / 1000:g}{units.THIN}k"
    else:
        text = f"{value:,g}".replace(",", units.THIN)
    return text.replace(".", QLocale().decimalPoint())


class CellButton(QAbstractButton):
    def __init__(self, strip: CellStrip, place: int) -> None:
        super().__init__(strip)
        self._strip, self.cell = strip, Cell(0, 0, 0, "", "")
        self.clicked.connect(lambda: strip.chosen.emit(place))

    def show_cell(self, cell: Cell) -> None:
        self.cell = cell
        self.setAccessibleName(cell.name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif not self._strip.walk(self, event.key()):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._strip.pointed.emit(self.cell.name)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._strip.pointed.emit("")

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._strip.pointed.emit(self.cell.name)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._strip.pointed.emit("")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=not self._strip.touching)
        painter.setPen(Qt.PenStyle.NoPen)
        bar, colour = self._bar(), colour_of(self.cell.tone)
        if bar.height() > 0:
            painter.setBrush(colour.darker(115) if self.underMouse() else colour)
            painter.drawRoundedRect(bar, 0 if self._strip.touching else 2, 0 if self._strip.touching else 2)
            lost = QRectF(bar.left(), bar.top(), bar.width(), self.cell.upper * self.height())
            painter.setBrush(QColor(theme.current().paused))
            painter.drawRect(lost)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.current().ink), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(1, 1, max(1, self.width() - 2), self.height() - 2))
        painter.end()

    def _bar(self) -> QRectF:
        height = min(1.0, self.cell.height) * self.height()
        if 0 < height < 2:  # noqa: PLR2004 - pixels that can just be seen
            height = 2.0
        if self._strip.touching:
            return QRectF(0, self.height() - height, self.width(), height)
        wide = min(_WIDEST, self.width() * 0.7)
        return QRectF((self.width() - wide) / 2, self.height() - height, wide, height)
