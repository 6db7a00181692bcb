"""What screen readers are told of scroll areas.

Qt's own answer reads beyond the end of its list where a screen reader asks for a child that is no longer there, and the app
crashes. The list becomes shorter when a page is hidden, with its scroll bar. Seen with Qt 6.12, in the function `child` of
QAccessibleAbstractScrollArea; other widgets answer that there is none. The draft of the upstream report is
docs/upstream/qt-scroll-area-child.md.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QScrollArea


def guard() -> None:
    """From now on scroll areas answer as other widgets do. Call it once, after the QApplication was made."""
    QAccessible.installFactory(_scroll_area)


def _scroll_area(name: str, widget: QObject) -> QAccessibleInterface | None:
    """Qt calls it with the name of each class of the widget, the derived one first."""
    if name == QScrollArea.__name__ and isinstance(widget, QScrollArea):
        return QAccessibleWidget(widget, QAccessible.Role.Client)
    return None
