"""The window: a rail on the left, a page beside it, strips below only while there is news or a problem."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from skep.core.model import Problem
from skep.core.snapshot import Snapshot
from skep_gui.focus import order_by_layout
from skep_gui.history import History
from skep_gui.now_page import NowPage
from skep_gui.parts import label
from skep_gui.problem_strip import ProblemStrip
from skep_gui.projects_page import ProjectsPage
from skep_gui.settings_page import SettingsPage
from skep_gui.shortcuts import add_escape, add_shortcuts
from skep_gui.stats_page import StatsPage
from skep_gui.update_strip import UpdateStrip

SIZE, LEAST = (960, 640), (760, 520)
RAIL = 160
FRAME = (16, 48)
"""What a window manager adds around a window, at most."""


def _fitting(window: QMainWindow) -> QSize:
    """The usual size, or what the screen has beside its panels and the window's own frame."""
    room = window.screen().availableSize() - QSize(*FRAME)
    return QSize(*SIZE).boundedTo(room).expandedTo(QSize(*LEAST))


@dataclass(frozen=True)
class Parts:
    """What the window consists of, in one language."""

    now: NowPage
    projects: ProjectsPage
    stats: StatsPage
    settings: SettingsPage
    strip: ProblemStrip
    news: UpdateStrip


class MainWindow(QMainWindow):
    closed = Signal()
    """The window was closed; whether skep goes on is not its business."""
    opened = Signal()
    quit_wanted = Signal()

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.setWindowTitle("skep")
        self.resize(_fitting(self))
        self.setMinimumSize(*LEAST)
        self._fault: Problem | None = None
        self._problem: Problem | None = None
        self.fill(parts)
        add_shortcuts(self)

    def fill(self, parts: Parts) -> None:
        """The pages, also anew in another language; those before are let go of."""
        self.now, self.projects, self.stats, self.settings = parts.now, parts.projects, parts.stats, parts.settings
        self.strip, self.news = parts.strip, parts.news
        add_escape(self.projects)
        self.rail = QListWidget()
        self.rail.setObjectName("rail")
        self.rail.setAccessibleName(self.tr("Pages"))
        self.rail.setFixedWidth(RAIL)
        self.rail.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rail.addItems([self.tr("Now"), self.tr("Projects"), self.tr("Stats"), self.tr("Settings")])
        self.pages = QStackedWidget()
        for page in (self.now, self.projects, self.stats, self.settings):
            self.pages.addWidget(page)
        self.rail.currentRowChanged.connect(self.pages.setCurrentIndex)
        self.rail.setCurrentRow(0)
        self.strip.dismissed.connect(lambda: self.show_fault(None))
        self.said = label("", "soft")
        self.said.setContentsMargins(24, 8, 24, 8)
        self.said.hide()
        self._lay_out()

    def _lay_out(self) -> None:
        whole = QWidget()
        whole.setObjectName("page")
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(self.said)
        column.addWidget(self.pages, 1)
        across = QHBoxLayout()
        across.setSpacing(0)
        across.addWidget(self.rail)
        across.addLayout(column, 1)
        layout = QVBoxLayout(whole)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(across, 1)
        layout.addWidget(self.news)
        layout.addWidget(self.strip)
        self.setCentralWidget(whole)

    def show_snapshot(self, snapshot: Snapshot, history: History, now: float) -> None:
        """Nothing is done while nobody can see it; it is shown anew when the window opens."""
        if not self.isVisible():
            return
        self.now.show_snapshot(snapshot, history, now)
        self.projects.show_snapshot(snapshot)
        self.settings.show_settings(snapshot.settings)
        self.settings.tester.show_snapshot(snapshot, now)
        self._problem = snapshot.problem
        self.strip.show_problem(self._fault or snapshot.problem)

    def show_fault(self, fault: Problem | None) -> None:
        """An error of skep's own, which stays until it is closed; None goes back to what the engine has."""
        self._fault = fault
        self.strip.show_problem(fault or self._problem)

    def go_to(self, page: QWidget) -> None:
        self.rail.setCurrentRow(self.pages.indexOf(page))

    def say(self, text: str) -> None:
        """A calm line above the page; "" takes it away."""
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def raise_up(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002, FBT001 - Qt's own name
        order_by_layout(self.centralWidget())
        return super().focusNextPrevChild(next)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.opened.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        event.accept()
        self.closed.emit()
