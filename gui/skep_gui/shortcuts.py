"""Keys of the window: the pages by number, the search of the settings, back, and the end. It only moves about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut

if TYPE_CHECKING:
    from skep_gui.main_window import MainWindow
    from skep_gui.projects_page import ProjectsPage


def add_shortcuts(window: MainWindow) -> None:
    """Ctrl+1 to Ctrl+4: the pages. Ctrl+F or Ctrl+Comma: Settings. Ctrl+Q: quit."""
    for place in range(window.pages.count()):
        QShortcut(QKeySequence(f"Ctrl+{place + 1}"), window, lambda place=place: _go(window, place))
    for keys in (QKeySequence(QKeySequence.StandardKey.Find), QKeySequence("Ctrl+,")):
        QShortcut(keys, window, lambda: _search(window))
    # the standard key for it is none outside the large desktops
    QShortcut(QKeySequence("Ctrl+Q"), window, window.quit_wanted.emit)


def add_escape(projects: ProjectsPage) -> None:
    """Escape: back to the cards."""
    back = QShortcut(QKeySequence(Qt.Key.Key_Escape), projects, projects.permission.back.click)
    back.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)


def _go(window: MainWindow, place: int) -> None:
    window.rail.setCurrentRow(place)
    window.rail.setFocus(Qt.FocusReason.ShortcutFocusReason)


def _search(window: MainWindow) -> None:
    window.go_to(window.settings)
    window.settings.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
