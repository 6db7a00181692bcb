"""The main window: navigation on the left, a page beside it, and strips at the bottom for problems and updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QListWidget, QMainWindow, QStackedWidget, QWidget

from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.pages.now_page import NowPage
from skep_gui.pages.projects_page import ProjectsPage
from skep_gui.pages.registry import Requests, kinds
from skep_gui.pages.settings_page import SettingsPage
from skep_gui.pages.stats_page import StatsPage
from skep_gui.widgets.focus import order_by_layout
from skep_gui.widgets.parts import column, label, row
from skep_gui.widgets.strips import ProblemStrip, UpdateStrip
from skep_gui.words.now import History
from skep_gui.words.translation import Translation

SIZE, LEAST = (960, 640), (760, 520)
RAIL = 160
FRAME = (16, 48)
"""Maximum size that a window manager adds around a window."""


def _fitting(window: QMainWindow) -> QSize:
    """The default size, limited to the screen without its panels and the window's frame."""
    room = window.screen().availableSize() - QSize(*FRAME)
    return QSize(*SIZE).boundedTo(room).expandedTo(QSize(*LEAST))


P = TypeVar("P", bound=QWidget)


class MainWindow(QMainWindow):
    closed = Signal()
    """The window was closed; the app decides whether skep goes on."""
    opened = Signal()
    quit_wanted = Signal()

    def __init__(self, translation: Translation) -> None:
        super().__init__()
        self.setWindowTitle("skep")
        self.resize(_fitting(self))
        self.setMinimumSize(*LEAST)
        self._fault: Problem | None = None
        self._problem: Problem | None = None
        self.fill(translation)
        self._add_shortcuts()

    def _add_shortcuts(self) -> None:
        """Ctrl+1 and so on: the pages. Ctrl+F or Ctrl+Comma: Settings. Ctrl+Q: quit."""
        for place in range(self.pages.count()):
            QShortcut(QKeySequence(f"Ctrl+{place + 1}"), self, lambda place=place: self._select(place))
        for keys in (QKeySequence(QKeySequence.StandardKey.Find), QKeySequence("Ctrl+,")):
            QShortcut(keys, self, self._search_settings)
        # QKeySequence.Quit is empty outside the large desktops
        QShortcut(QKeySequence("Ctrl+Q"), self, self.quit_wanted.emit)

    def _select(self, place: int) -> None:
        self.rail.setCurrentRow(place)
        self.rail.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _search_settings(self) -> None:
        self.go_to(self.settings)
        self.settings.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def speak(self, translation: Translation, connect: Callable[[MainWindow], None]) -> None:
        """Make everything again in another language, and `connect` it; the user stays in the same place."""
        page, place = self.rail.currentRow(), self.settings.place()
        self.fill(translation)
        connect(self)
        self.settings.go_back_to(place)
        self.rail.setCurrentRow(page)

    def fill(self, translation: Translation) -> None:
        """Make the pages and strips, also again for another language; earlier ones are deleted."""
        self._made = [(kind, kind.make(translation)) for kind in kinds()]
        self.strip, self.news = ProblemStrip(translation.problems), UpdateStrip()
        self.now, self.projects = self._page(NowPage), self._page(ProjectsPage)
        self.stats, self.settings = self._page(StatsPage), self._page(SettingsPage)
        self.rail = QListWidget()
        self.rail.setObjectName("rail")
        self.rail.setAccessibleName(self.tr("Pages"))
        self.rail.setFixedWidth(RAIL)
        self.rail.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.pages = QStackedWidget()
        for _, page in self._made:
            self.rail.addItem(page.windowTitle())
            self.pages.addWidget(page)
        self.rail.currentRowChanged.connect(self.pages.setCurrentIndex)
        self.rail.setCurrentRow(0)
        self.strip.dismissed.connect(lambda: self.show_fault(None))
        self.said = label("", "soft")
        self.said.setContentsMargins(24, 8, 24, 8)
        self.said.hide()
        self._lay_out()

    def _page(self, wanted: type[P]) -> P:
        """A page that other parts fill or open."""
        return next(page for _, page in self._made if isinstance(page, wanted))

    def connect_pages(self, requests: Requests) -> None:
        for kind, page in self._made:
            kind.connect(page, requests)

    def _lay_out(self) -> None:
        whole = QWidget()
        whole.setObjectName("page")
        beside = column(self.said, self.pages, spacing=0)
        beside.setStretch(1, 1)
        across = row(self.rail, beside, spacing=0)
        across.setStretch(1, 1)
        layout = column(across, self.news, self.strip, spacing=0)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setStretch(0, 1)
        whole.setLayout(layout)
        self.setCentralWidget(whole)

    def show_snapshot(self, snapshot: Snapshot, history: History, now: float) -> None:
        """Ignored while the window is hidden; it is updated when the window opens."""
        if not self.isVisible():
            return
        for kind, page in self._made:
            kind.show(page, snapshot, history, now)
        self._problem = snapshot.problem
        self.strip.show_problem(self._fault or snapshot.problem)

    def show_fault(self, fault: Problem | None) -> None:
        """Show an error in skep itself until it is closed; None shows the engine's problem again."""
        self._fault = fault
        self.strip.show_problem(fault or self._problem)

    def go_to(self, page: QWidget) -> None:
        self.rail.setCurrentRow(self.pages.indexOf(page))

    def go_to_projects(self) -> None:
        self.go_to(self.projects)

    def go_to_setting(self, key: str) -> None:
        self.go_to(self.settings)
        self.settings.reveal(key)

    def say(self, text: str) -> None:
        """A short message above the page; "" removes it."""
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
