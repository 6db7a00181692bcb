"""The colours and the sheet of style; the only place where a colour is written down.

`LIGHT` and `DARK` are checked by a test for their contrast. It must not know a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

GRID: Final = 8
BASE_PX: Final = 13
_PROPERTY: Final = "skep-colours"


@dataclass(frozen=True)
class Colours:
    """`honey` is for text and focus, `fill` for areas, `on_fill` for text on them; `well` `problem` `paused` say how it goes."""

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
    """In charts: what the computer itself needed."""
    panel: str
    """The mark on a panel of this scheme."""


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


def system_is_dark() -> bool:
    return QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark


def chosen(theme: str) -> Colours:
    """The colours of the setting app.theme: system, light or dark."""
    dark = system_is_dark() if theme == "system" else theme == "dark"
    return DARK if dark else LIGHT


def apply(app: QApplication, colours: Colours) -> None:
    """Dress the whole application; may be called again when the theme changes."""
    app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(palette(colours))
    app.setStyleSheet(sheet(colours))
    app.setProperty(_PROPERTY, colours)


def current() -> Colours:
    """What the application wears now, for those who paint themselves."""
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


def sheet(c: Colours) -> str:
    """The style sheet. Widgets are named by `setObjectName` or by the property `tone`."""
    return f"""
* {{ font-size: {BASE_PX}px; }}
QWidget {{ color: {c.ink}; }}
QMainWindow, QDialog, QWidget#page, QScrollArea, QWidget#scrolled {{ background: {c.ground}; border: none; }}
QLabel {{ background: transparent; }}
QLabel#title {{ font-size: 20px; font-weight: 600; }}
QLabel#sentence {{ font-size: 17px; font-weight: 600; }}
QLabel#heading {{ font-weight: 600; }}
QLabel#figure {{ font-size: 28px; font-weight: 500; }}
QLabel#soft, QLabel[tone="soft"] {{ color: {c.soft}; }}
QLabel[tone="well"] {{ color: {c.well}; }}
QLabel[tone="gentle"] {{ color: {c.honey}; }}
QLabel[tone="problem"] {{ color: {c.problem}; }}
QLabel[tone="paused"] {{ color: {c.paused}; }}
QLabel#badge {{ border: 1px solid {c.line}; border-radius: 9px; padding: 1px 8px; }}
QFrame#card {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 10px; }}
QFrame#card[dropping="true"] {{ border: 2px solid {c.fill}; }}
QFrame#line {{ background: {c.line}; max-height: 1px; border: none; }}
QFrame#strip {{ background: {c.card}; border: none; border-top: 2px solid {c.problem}; }}
QFrame#news {{ background: {c.card}; border: none; border-top: 2px solid {c.fill}; }}
QListWidget#rail {{ background: {c.card}; border: none; border-right: 1px solid {c.line}; outline: none; padding: 8px; }}
QListWidget#rail::item {{ height: 36px; padding-left: 10px; border-radius: 8px; color: {c.soft}; border: 2px solid transparent; }}
QListWidget#rail::item:hover {{ color: {c.ink}; }}
QListWidget#rail::item:selected {{ background: {c.line}; color: {c.ink}; }}
QListWidget#rail::item:selected:focus {{ border: 2px solid {c.honey}; }}
QPushButton, QToolButton {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 8px; padding: 6px 14px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {c.soft}; }}
QPushButton:disabled {{ color: {c.soft}; background: {c.ground}; }}
QPushButton#primary, QToolButton#primary {{ background: {c.fill}; border: 1px solid {c.fill}; color: {c.on_fill}; font-weight: 600; }}
QPushButton#primary:disabled {{ background: {c.line}; border-color: {c.line}; color: {c.soft}; }}
QPushButton#flat {{ background: transparent; border: 1px solid transparent; color: {c.honey}; padding: 4px 8px; }}
QPushButton:focus, QToolButton:focus, QComboBox:focus, QLineEdit:focus, QAbstractSpinBox:focus, QCheckBox:focus,
QPushButton#primary:focus, QToolButton#primary:focus, QPushButton#flat:focus {{ border: 2px solid {c.honey}; }}
QPushButton#primary:focus, QToolButton#primary:focus {{ border: 2px solid {c.ink}; }}
QToolButton#primary {{ padding-right: 26px; }}
QToolButton#primary::menu-indicator {{ subcontrol-position: right center; subcontrol-origin: padding; right: 10px; }}
QLineEdit, QComboBox, QAbstractSpinBox {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 8px; padding: 5px 8px; min-height: 18px; }}
QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled, QCheckBox:disabled {{ color: {c.soft}; background: {c.ground}; }}
QComboBox#choice::drop-down {{ border: none; width: 22px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ width: 0; border: none; }}
QAbstractSpinBox QLineEdit {{ background: transparent; border: none; padding: 0 8px; min-height: 0; }}
QPlainTextEdit {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 8px; padding: 6px; }}
QPlainTextEdit:focus {{ border: 2px solid {c.honey}; }}
QCheckBox {{ border: 2px solid transparent; border-radius: 6px; padding: 3px; }}
QCheckBox::indicator:unchecked, QRadioButton::indicator:unchecked {{ border: 1px solid {c.soft}; background: {c.card}; }}
QCheckBox::indicator:unchecked {{ border-radius: 3px; }}
QRadioButton::indicator:unchecked {{ border-radius: 7px; }}
QRadioButton::indicator:checked {{ border: 1px solid {c.honey}; border-radius: 7px;
  background: qradialgradient(cx:0.5, cy:0.5, radius:0.5, fx:0.5, fy:0.5, stop:0 {c.fill}, stop:0.5 {c.fill}, stop:0.6 {c.card}, stop:1 {c.card}); }}
QProgressBar {{ background: {c.line}; border: none; border-radius: 4px; max-height: 8px; min-height: 8px; }}
QProgressBar::chunk {{ background: {c.fill}; border-radius: 4px; }}
QSlider {{ min-height: 26px; }}
QSlider::groove:horizontal {{ background: {c.line}; height: 6px; border-radius: 3px; }}
QSlider::sub-page:horizontal {{ background: {c.fill}; height: 6px; border-radius: 3px; }}
QSlider::sub-page:horizontal:disabled {{ background: {c.soft}; }}
QSlider::handle:horizontal {{ background: {c.card}; border: 2px solid {c.honey}; width: 14px; margin: -6px 0; border-radius: 9px; }}
QSlider::handle:horizontal:disabled {{ border-color: {c.soft}; }}
QSlider::handle:horizontal:focus {{ background: {c.honey}; }}
QMenu {{ background: {c.card}; border: 1px solid {c.line}; padding: 4px; }}
QMenu::item {{ padding: 6px 24px 6px 14px; border-radius: 6px; }}
QMenu::item:selected {{ background: {c.ground}; }}
QMenu::item:disabled {{ color: {c.soft}; }}
QMenu::separator {{ height: 1px; background: {c.line}; margin: 4px 8px; }}
QTableWidget {{ background: {c.card}; border: none; gridline-color: {c.line}; }}
QHeaderView::section {{ background: {c.card}; color: {c.soft}; border: none; border-bottom: 1px solid {c.line}; padding: 6px; }}
QScrollBar:vertical {{ background: transparent; width: 10px; }}
QScrollBar::handle:vertical {{ background: {c.line}; border-radius: 5px; min-height: 24px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QToolTip {{ background: {c.card}; color: {c.ink}; border: 1px solid {c.line}; padding: 4px; }}
"""


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance of "#RRGGBB", 0..1."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]  # noqa: PLR2004 - WCAG's
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio, 1..21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
