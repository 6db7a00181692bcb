"""The colours, which are defined only here, and the style sheet that uses them (theme.qss).

A test checks the contrast of `LIGHT` and `DARK`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

GRID: Final = 8
BASE_PX: Final = 13
SHEET: Final = Path(__file__).with_suffix(".qss")
_PROPERTY: Final = "skep-colours"


@dataclass(frozen=True)
class Colours:
    """`honey` is for text and focus, `fill` for areas, `on_fill` for text on them; `well`, `problem`, `paused` are
    states.
    """

    ground: str
    card: str
    line: str
    ink: str
    soft: str
    honey: str
    fill: str
    on_fill: str
    well: str
    problem: str
    paused: str
    machine: str
    """In charts: what the computer's own use needed."""
    panel: str
    """The mark on a panel with this colour scheme."""


LIGHT: Final = Colours(
    ground="#FBFAF7",
    card="#FFFFFF",
    line="#E4E0D8",
    ink="#1F1D1A",
    soft="#6B665E",
    honey="#955E02",
    fill="#E3A008",
    on_fill="#1F1D1A",
    well="#2F7D4F",
    problem="#B93815",
    paused="#5B6B7A",
    machine="#8A5A83",
    panel="#6B665E",
)
"""The honey of text is darker than the design's #B87503, which has 3.6:1 on paper where text needs 4.5:1."""

DARK: Final = Colours(
    ground="#171614",
    card="#211F1C",
    line="#35322D",
    ink="#EFEBE3",
    soft="#A39C90",
    honey="#F2B134",
    fill="#F2B134",
    on_fill="#1F1D1A",
    well="#63B787",
    problem="#F0794F",
    paused="#93A3B3",
    machine="#C793C0",
    panel="#EFEBE3",
)


def chosen(theme: str) -> Colours:
    """The colours for the setting app.theme: system, light or dark."""
    if theme == "system":
        return DARK if QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark else LIGHT
    return DARK if theme == "dark" else LIGHT


def apply(app: QApplication, colours: Colours) -> None:
    """Apply the colours to the whole application; called again when the theme changes."""
    app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(palette(colours))
    app.setStyleSheet(sheet(colours))
    app.setProperty(_PROPERTY, colours)


def current() -> Colours:
    """The application's current colours, for widgets with their own painting."""
    app = QApplication.instance()
    worn = None if app is None else app.property(_PROPERTY)
    return worn if isinstance(worn, Colours) else LIGHT


def palette(colours: Colours) -> QPalette:
    made = QPalette()
    role = QPalette.ColorRole
    for each, colour in (
        (role.Window, colours.ground),
        (role.Base, colours.card),
        (role.AlternateBase, colours.ground),
        (role.Button, colours.card),
        (role.ToolTipBase, colours.card),
        (role.WindowText, colours.ink),
        (role.Text, colours.ink),
        (role.ButtonText, colours.ink),
        (role.ToolTipText, colours.ink),
        (role.PlaceholderText, colours.soft),
        (role.Highlight, colours.fill),
        (role.HighlightedText, colours.on_fill),
        (role.Link, colours.honey),
        (role.Mid, colours.line),
        (role.Accent, colours.fill),
    ):
        made.setColor(each, QColor(colour))
    for each in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, each, QColor(colours.soft))
    return made


def sheet(colours: Colours) -> str:
    """The style sheet with these colours."""
    return Template(SHEET.read_text(encoding="utf-8")).substitute(asdict(colours), base=BASE_PX)
