"""Checks of what is visible in a window: each page, cut-off texts, widgets outside the window."""

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QPoint
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtWidgets import QAbstractButton, QComboBox, QDoubleSpinBox, QLabel, QLineEdit, QMenu, QScrollArea, QWidget


def settle():
    for _ in range(3):
        QCoreApplication.processEvents()


def show_all(window):
    """Show each page in turn, including the page before joining if a project is known; yields its name."""
    for name in ("now", "projects", "stats", "settings"):
        page = getattr(window, name)
        window.go_to(page)
        if name == "projects":
            page.setCurrentWidget(page.list)
        settle()
        yield name
    if window.projects._known:
        window.go_to(window.projects)
        window.projects.open(next(iter(window.projects._known)))
        settle()
        yield "permission"
        window.projects.setCurrentWidget(window.projects.list)


def cut(page: QWidget, window: QWidget) -> list[str]:
    """The texts of a page that are cut off, and buttons that are partly outside the window."""
    labels = [each for each in page.findChildren(QLabel) if each.isVisible() and each.text()]
    narrow = [each for each in labels if not each.wordWrap() and each.width() < each.sizeHint().width() - 1]
    low = [each for each in labels if each.height() < each.heightForWidth(each.width()) - 1]
    words = [*labels, *(each for each in page.findChildren(QAbstractButton) if each.isVisible() and each.text())]
    outside = [each for each in words if _right_edge(each, window) > window.width()]
    hidden = [each for each in words if not _can_be_scrolled_to(each, window)]
    return [each.text() for each in (*narrow, *low, *outside, *hidden)]


def _right_edge(widget, window):
    return widget.mapTo(window, widget.rect().topRight()).x()


def _can_be_scrolled_to(widget, window):
    """Whether the widget is above the window's lower edge or in a scroll area."""
    parent = widget.parentWidget()
    while parent is not None and parent is not window:
        if isinstance(parent, QScrollArea):
            return True
        parent = parent.parentWidget()
    return widget.mapTo(window, QPoint(0, widget.height())).y() <= window.height() + 1


def spoken(widget):
    """The name that a screen reader reads; for a combo box that is not Qt's text but the name of its label."""
    if isinstance(widget, QComboBox):
        return widget.accessibleName()
    interface = QAccessible.queryAccessibleInterface(widget)
    return "" if interface is None else interface.text(QAccessible.Text.Name).strip()


def shown(widget: QWidget) -> Iterator[str]:
    """Every text of a widget and its children that is shown or read by a screen reader."""
    for each in (widget, *widget.findChildren(QWidget)):
        yield from (each.toolTip(), each.accessibleName(), each.accessibleDescription(), each.windowTitle())
        if isinstance(each, QLabel | QAbstractButton):
            yield each.text()
        if isinstance(each, QLineEdit):
            yield each.placeholderText()
        if isinstance(each, QComboBox):
            yield from (each.itemText(place) for place in range(each.count()))
        if isinstance(each, QDoubleSpinBox):
            yield from (each.specialValueText(), each.suffix())
        if isinstance(each, QMenu):
            each.aboutToShow.emit()
            yield each.title()
    yield from (action.text() for action in widget.findChildren(QAction))
