"""What pages are made of: labels that never take text for markup, cards, lines, a page that scrolls."""

from __future__ import annotations

import html
import re
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from skep_gui.widgets.theme import GRID

_LONG: Final = re.compile(r"\S{33,}")
_PIECE: Final = re.compile(r"([^\s\u200b]{16})(?=[^\s\u200b\u0300-\u036f])")


def label(text: str = "", name: str = "", *, wrap: bool = True, select: bool = False) -> QLabel:
    """Plain text always: nothing that comes from a project may become markup."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setObjectName(name)
    made.setWordWrap(wrap)
    if wrap:
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        made.setSizePolicy(policy)
    if select:
        made.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
    return made


def unbroken(text: str) -> str:
    """A number and its unit stay on one line: a thin space may be broken at, the narrow no-break space is as thin."""
    return text.replace("\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}")


def breakable(text: str) -> str:
    """Words longer than any line may break, so that none holds a page wide; the mark for it takes no room.

    Addresses break after a slash first.
    """
    return _LONG.sub(lambda word: _PIECE.sub("\\1\u200b", word[0].replace("/", "/\u200b")), text)


def tip(widget: QWidget, text: str) -> None:
    """A tooltip that is plain text whatever is in it; Qt else guesses, and would take a project's words for markup."""
    widget.setToolTip(f"<p>{html.escape(text)}</p>" if text else "")
    widget.setAccessibleDescription(text)


def toned(widget: QWidget, tone: str) -> None:
    """Colour a label by what it says; the theme knows the colours."""
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def button(text: str, name: str = "") -> QPushButton:
    made = QPushButton(text)
    made.setObjectName(name)
    made.setAutoDefault(False)
    made.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    return made


def row(*widgets: QWidget | None, spacing: int = GRID) -> QHBoxLayout:
    """Side by side; None is a gap that grows."""
    made = QHBoxLayout()
    made.setSpacing(spacing)
    for each in widgets:
        if each is None:
            made.addStretch(1)
        else:
            made.addWidget(each)
    return made


class Card(QFrame):
    """A rounded card with 16 px inside; `body` takes what is in it."""

    def __init__(self, heading: str = "") -> None:
        super().__init__()
        self.setObjectName("card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        self.body.setSpacing(GRID)
        self.heading = label(heading, "heading")
        # what is made visible before it has a parent flashes up as a window of its own, and takes the keyboard
        self.body.addWidget(self.heading)
        self.heading.setVisible(bool(heading))


class Page(QScrollArea):
    """A page with a title; what does not fit is scrolled, never cut."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setWindowTitle(title)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        inside.setObjectName("scrolled")
        self.body = QVBoxLayout(inside)
        self.body.setContentsMargins(3 * GRID, 3 * GRID, 3 * GRID, 3 * GRID)
        self.body.setSpacing(2 * GRID)
        self.title = label(title, "title")
        self.top = row(self.title, None)
        self.body.addLayout(self.top)
        self.setWidget(inside)


def scrolled(inside: QWidget) -> QScrollArea:
    """For what may want more room than the screen has."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    inside.setObjectName("scrolled")
    area.setWidget(inside)
    return area


def emptied(layout: QLayout) -> None:
    """Take everything out of a layout and let go of it."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            emptied(inner)
