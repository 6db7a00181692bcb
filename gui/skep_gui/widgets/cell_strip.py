"""Bars side by side that can be pointed at, clicked, and walked through by the arrow keys; each has a name for readers.

Each bar is a button of its own, so that a screen reader finds it; only one of them is a stop of the tab key.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from skep_gui.widgets import theme
from skep_gui.words.stats import Cell, Chart

BELOW: Final = 22
AXIS: Final = 52
_LINES: Final = 2
"""Parts of the height between which a faint line runs."""
_WIDEST: Final = 36
"""Pixels of a bar that stands alone; those of a timeline touch."""
_FAINT: Final = 90
"""Of 255: what no rule is the reason of."""
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
    """The number of the bar that was clicked, or entered."""
    pointed = Signal(str)
    """The name of the bar under the pointer or with the focus; "" when it is left."""

    def __init__(self, height: int, *, touching: bool) -> None:
        """`touching` bars fill their width, as those of a timeline do."""
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
        """Move the focus by an arrow key, Home or End."""
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
        for line in range(_LINES + 1 if self._chart.top else 1):
            y = area.bottom() - line / _LINES * area.height()
            painter.setPen(QPen(QColor(colours.line), 1))
            painter.drawLine(round(area.left()), round(y), round(area.right()), round(y))
            if self._chart.top:
                painter.setPen(QColor(colours.soft))
                value = axis_number(self._chart.top * line / _LINES)
                painter.drawText(QRectF(0, y - 9, AXIS - 8, 18), flag.AlignRight | flag.AlignVCenter, value)
        painter.setPen(QColor(colours.soft))
        for place, text in self._chart.labels:
            wide = painter.fontMetrics().horizontalAdvance(text) + 2
            left = min(max(area.left() + place * area.width() - wide / 2, area.left()), self.width() - wide)
            painter.drawText(QRectF(left, area.bottom() + 4, wide, 18), flag.AlignCenter, text)
        painter.end()


def axis_number(value: float) -> str:
    """Short enough for the edge of a chart: 150000 -> "150 k"."""
    if value >= 1e6:  # noqa: PLR2004 - a million
        return f"{value / 1e6:g}\u2009M"
    return f"{value / 1000:g}\u2009k" if value >= 1e4 else f"{value:,g}".replace(",", "\u2009")  # noqa: PLR2004


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
