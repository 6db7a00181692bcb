"""Building blocks of pages: plain-text labels, buttons, cards, layouts, a page that scrolls."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QPointF, Qt, SignalInstance
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QMenu,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from skep_gui.widgets import theme
from skep_gui.widgets.theme import GRID
from skep_gui.words.now import Now

_LONG: Final = re.compile(r"\S{33,}")
_PIECE: Final = re.compile(r"([^\s\u200b]{16})(?=[^\s\u200b\u0300-\u036f])")


def label(text: str = "", name: str = "", *, wrap: bool = True, select: bool = False, tone: str = "") -> QLabel:
    """A plain-text label: text from a project must never be interpreted as markup. `tone` as in `toned`."""
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
    if tone:
        toned(made, tone)
    return made


def unbroken(text: str) -> str:
    """Keep a number and its unit on one line: replaces the thin space by a no-break space of the same width."""
    return text.replace("\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}")


def breakable(text: str) -> str:
    """Allow breaks within long words, which would otherwise set a page's minimum width; uses an invisible character.

    Addresses break after a slash first.
    """
    return _LONG.sub(lambda word: _PIECE.sub("\\1\u200b", word[0].replace("/", "/\u200b")), text)


def tip(widget: QWidget, text: str) -> None:
    """Set a plain-text tooltip; otherwise Qt guesses, and may interpret a project's text as markup."""
    widget.setToolTip(f"<p>{html.escape(text)}</p>" if text else "")
    widget.setAccessibleDescription(text)


def restyled(widget: QWidget) -> None:
    """Apply the theme again, after a name or a property that it selects by has changed."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def named(widget: QWidget, name: str) -> None:
    """Change the object name that the theme selects by."""
    if widget.objectName() != name:
        widget.setObjectName(name)
        restyled(widget)


def toned(widget: QWidget, tone: str) -> None:
    """Colour a label by its meaning; the theme defines the colours."""
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        restyled(widget)


def button(text: str, name: str = "", clicked: Callable[[], object] | SignalInstance | None = None) -> QPushButton:
    made = QPushButton(text)
    made.setObjectName(name)
    made.setAutoDefault(False)
    made.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


Part = QWidget | QLayout | None
"""An item of a row or a column; None is a stretchable gap."""


def put(layout: QBoxLayout, *parts: Part) -> None:
    """Append them to the layout."""
    for each in parts:
        if each is None:
            layout.addStretch(1)
        elif isinstance(each, QWidget):
            layout.addWidget(each)
        else:
            layout.addLayout(each)


def row(*parts: Part, spacing: int = GRID, even: bool = False) -> QHBoxLayout:
    """Widgets side by side; with `even` all have the same width."""
    made = QHBoxLayout()
    made.setSpacing(spacing)
    put(made, *parts)
    if even:
        for place in range(made.count()):
            made.setStretch(place, 1)
    return made


def column(*parts: Part, spacing: int = GRID) -> QVBoxLayout:
    """Widgets below each other."""
    made = QVBoxLayout()
    made.setSpacing(spacing)
    put(made, *parts)
    return made


def grid(across: int, down: int | None = None, *, wide: int | None = None) -> QGridLayout:
    """Spacings in pixels; `down` None is the style's default; `wide` is the column that takes the remaining width."""
    made = QGridLayout()
    made.setHorizontalSpacing(across)
    if down is not None:
        made.setVerticalSpacing(down)
    if wide is not None:
        made.setColumnStretch(wide, 1)
    return made


class Card(QFrame):
    """A rounded card with 16 px padding; `add` appends a widget."""

    def __init__(self, heading: str = "", *parts: Part) -> None:
        super().__init__()
        self.setObjectName("card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        self.body.setSpacing(GRID)
        self.heading = label(heading, "heading")
        # a widget made visible before it has a parent appears briefly as a window, and takes the keyboard focus
        self.body.addWidget(self.heading)
        self.heading.setVisible(bool(heading))
        self.add(*parts)

    def add(self, *parts: Part) -> None:
        put(self.body, *parts)


class Scrolled(QScrollArea):
    """A scroll area for content that may need more room than there is, so that it is not cut."""

    def __init__(self, inside: QWidget) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside.setObjectName("scrolled")
        self.setWidget(inside)


class Page(Scrolled):
    """A page with a title, `top` beside it and `body` below."""

    def __init__(self, title: str) -> None:
        inside = QWidget()
        self.body = QVBoxLayout(inside)
        self.body.setContentsMargins(3 * GRID, 3 * GRID, 3 * GRID, 3 * GRID)
        self.body.setSpacing(2 * GRID)
        self.title = label(title, "title")
        self.top = row(self.title, None)
        self.body.addLayout(self.top)
        super().__init__(inside)
        self.setWindowTitle(title)

    def add(self, *parts: Part) -> None:
        put(self.body, *parts)


class ChoiceBox(QComboBox):
    """A combo box with its own arrow: with a style sheet, Qt's arrow gets a frame or is not drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("choice")

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.current().soft), 1.5))
        right, middle = self.width() - 14.0, self.height() / 2
        painter.drawPolyline(
            [QPointF(right - 4, middle - 2), QPointF(right, middle + 2), QPointF(right + 4, middle - 2)]
        )
        painter.end()


def fill_pause_menu(menu: QMenu, words: Now, chosen: Callable[[float | None], None]) -> None:
    """Fill the menu with the lengths of a pause. The end is computed when one is chosen, not when the menu is made."""
    menu.clear()
    for place, choice in enumerate(words.pauses(time.time())):
        action = menu.addAction(choice.text)
        action.triggered.connect(lambda _=False, place=place: chosen(words.pauses(time.time())[place].until))


def emptied(layout: QLayout) -> None:
    """Remove and delete everything in a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            emptied(inner)
