"""Ten minutes of samples a second and share. Costs nothing while hidden: no library is loaded and nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from skep_gui import theme
from skep_gui.history import SPAN, Point
from skep_gui.parts import label, row


class LivePlot(QWidget):
    """Two lines over one time: samples a second on the left axis, share in percent on the right one."""

    def __init__(self) -> None:
        super().__init__()
        self._points: Sequence[Point] = ()
        self._now = 0.0
        self._plot: Any = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._rate_dot, self._share_dot = label("●", wrap=False), label("●", wrap=False)
        self._empty = label(self.tr("The first minutes of training draw this."), "soft")
        names = (
            label(self.tr("samples a second"), "soft", wrap=False),
            label(self.tr("share in percent"), "soft", wrap=False),
        )
        self._layout.addLayout(row(self._rate_dot, names[0], None, names[1], self._share_dot))
        self._layout.addWidget(self._empty, 0, Qt.AlignmentFlag.AlignCenter)
        self.setFixedHeight(220)
        self.setAccessibleName(self.tr("Samples a second and share, over ten minutes"))

    def show_points(self, points: Sequence[Point], now: float) -> None:
        """`now` is wall clock seconds. Nothing happens while nobody can see it."""
        self._points, self._now = points, now
        if self.isVisible():
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()

    def _draw(self) -> None:
        few = len(self._points) < 2  # noqa: PLR2004 - a line has two ends
        self._empty.setVisible(few)
        if few and self._plot is None:
            return
        plot = self._plot or self._make()
        plot.setVisible(not few)
        ages = [(point.at - self._now) / 60 for point in self._points]
        self._rate.setData(ages, [point.samples_per_second for point in self._points])
        self._share.setData(ages, [point.share * 100 for point in self._points])
        top = max((point.samples_per_second for point in self._points), default=1.0)
        plot.setYRange(0, max(top * 1.15, 0.1), padding=0)

    def _make(self) -> Any:
        import pyqtgraph  # noqa: PLC0415 - it brings numpy, which a hidden window does without

        colours = theme.current()
        rate, share = QColor(colours.fill), QColor(colours.paused)
        plot = pyqtgraph.PlotWidget(background=None)
        plot.setStyleSheet("background: transparent; border: none")
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.setMouseEnabled(x=False, y=False)
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.setXRange(-SPAN / 60, 0, padding=0)
        plot.getAxis("bottom").setTicks([[(-8, self.tr("8 min ago")), (-6, "6"), (-4, "4"), (-2, "2")]])
        self._rate = plot.plot(pen=pyqtgraph.mkPen(rate, width=2), antialias=True)
        self._second = second = pyqtgraph.ViewBox(enableMenu=False)
        second.setMouseEnabled(x=False, y=False)
        item = plot.getPlotItem()
        item.showAxis("right")
        item.scene().addItem(second)
        item.getAxis("right").linkToView(second)
        second.setXLink(item)
        second.setYRange(0, 105, padding=0)
        self._share = pyqtgraph.PlotCurveItem(pen=pyqtgraph.mkPen(share, width=2), antialias=True)
        second.addItem(self._share)
        item.vb.sigResized.connect(lambda: second.setGeometry(item.vb.sceneBoundingRect()))
        for name in ("left", "bottom", "right"):
            axis = item.getAxis(name)
            axis.setTextPen(QColor(colours.soft))
            axis.setPen(QColor(colours.line))
        for dot, colour in ((self._rate_dot, rate), (self._share_dot, share)):
            dot.setStyleSheet(f"color: {colour.name()}")
        self._layout.addWidget(plot, 1)
        self._plot = plot
        return plot

    def repaint_colours(self) -> None:
        """After a change of theme: made anew when it is drawn next."""
        if self._plot is not None:
            self._plot.hide()
            self._plot.deleteLater()
            self._plot = None
        if self.isVisible():
            self._draw()
