"""Keyboard focus: a tab order that follows the layout, and the focus kept when a list is made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLayout, QScrollArea, QStackedWidget, QWidget


def order_by_layout(window: QWidget | None) -> None:
    """Set the tab order to that of the layouts; Qt's default is the order in which widgets were made."""
    for one, other in pairwise(_reachable(window)):
        QWidget.setTabOrder(one, other)


def _reachable(widget: QWidget | None) -> Iterator[QWidget]:
    if widget is None:
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield widget  # the children of a compound widget, such as a spin box, keep their own order
        return
    if isinstance(widget, QScrollArea):
        yield from _reachable(widget.widget())
    elif isinstance(widget, QStackedWidget):
        yield from _reachable(widget.currentWidget())
    elif (layout := widget.layout()) is not None:
        yield from _in(layout)
    else:
        for child in widget.children():
            if isinstance(child, QWidget):
                yield from _reachable(child)


def _in(layout: QLayout) -> Iterator[QWidget]:
    for place in range(layout.count()):
        item = layout.itemAt(place)
        if item is None:
            continue
        yield from _reachable(item.widget())
        if (inner := item.layout()) is not None:
            yield from _in(inner)


@contextmanager
def focus_kept(page: QWidget) -> Iterator[None]:
    """Restores the focus after buttons were made again: it goes to the button with the same accessible name."""
    holder, before = QApplication.focusWidget(), page.findChildren(QAbstractButton)
    name = holder.accessibleName() if holder is not None and page.isAncestorOf(holder) else ""
    yield
    if not name or QApplication.focusWidget() is holder:
        return
    made = (each for each in page.findChildren(QAbstractButton) if each not in before)
    if (again := next((each for each in made if each.accessibleName() == name), None)) is not None:
        _show_within(page, again)
        again.setFocus(Qt.FocusReason.OtherFocusReason)


def _show_within(page: QWidget, widget: QWidget) -> None:
    """Show it now: Qt shows a widget that was just put into a layout later, and until then it cannot have the focus."""
    parent = widget.parentWidget()
    while parent is not None and parent is not page:
        parent.show()
        parent = parent.parentWidget()
