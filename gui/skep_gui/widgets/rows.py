"""Widgets shared by several pages: large figures side by side, devices, the rules in effect, links to settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from skep_gui.widgets.parts import Card, breakable, button, emptied, label, named, row, unbroken
from skep_gui.widgets.theme import GRID
from skep_gui.words.now import DeviceLine, Figure, RuleRow
from skep_gui.words.speaker import filled

NARROW: Final = 660
"""Pixels; in a narrower page two figures form a row."""
COUNT: Final = 4
FULL: Final = 1000


class FigureRow(QWidget):
    """Four large figures in a row, or two rows of two in a narrow window."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(16)
        self._cards = [FigureCard() for _ in range(COUNT)]
        self._columns = 0
        # otherwise four in a row would set the page's minimum width, and it could not become narrow
        self.setMinimumWidth(NARROW // 2)
        self._arrange(COUNT)

    def show_figures(self, figures: Sequence[Figure]) -> None:
        for card, figure in zip(self._cards, figures, strict=True):
            card.show_figure(figure)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if event.size().width() < NARROW else COUNT)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for place, card in enumerate(self._cards):
            self._grid.addWidget(card, place // columns, place % columns)
        for column in range(COUNT):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)


class FigureCard(Card):
    """A large figure with its label above and smaller lines below."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.value = label("", "soft", wrap=False), label("", "figure", wrap=False)
        self.below = label("", "soft")
        self.body.setSpacing(2)
        self.add(self.name, self.value, self.below, None)

    def show_figure(self, figure: Figure) -> None:
        self.name.setText(figure.label)
        # a name is not a number: one that does not fit is written in smaller letters, so that it is not cut
        fits = len(figure.value) <= 9  # noqa: PLR2004 - characters
        named(self.value, "figure" if fits else "heading")
        self.value.setWordWrap(not fits)
        self.value.setText(figure.value)
        # each part on its own line: a card is too narrow for two, and the row's height stays the same
        self.below.setText(unbroken(figure.below.replace(" · ", "\n")))
        self.setToolTip(figure.explained)


class DeviceLines(QVBoxLayout):
    """Several devices: the name and the share of each, its readings below."""

    def __init__(self) -> None:
        super().__init__()
        self.setSpacing(2)
        self._lines: list[tuple[QLabel, QProgressBar, QLabel, QLabel]] = []

    def show_devices(self, devices: Sequence[DeviceLine]) -> None:
        if len(devices) != len(self._lines):
            emptied(self)
            self._lines = [self._line(first=place == 0) for place in range(len(devices))]
        for (name, bar, share, details), device in zip(self._lines, devices, strict=True):
            name.setText(breakable(device.name))
            bar.setValue(round(device.fraction * FULL))
            bar.setAccessibleName(device.name)
            bar.setAccessibleDescription(f"{device.share} · {device.details}")
            share.setText(device.share)
            details.setText(unbroken(device.details))
            details.setVisible(bool(device.details))

    def _line(self, *, first: bool) -> tuple[QLabel, QProgressBar, QLabel, QLabel]:
        name, bar, share, details = label(), QProgressBar(), label(wrap=False), label("", "soft")
        bar.setTextVisible(False)
        bar.setRange(0, FULL)
        bar.setFixedWidth(160)
        share.setMinimumWidth(56)
        share.setAlignment(Qt.AlignmentFlag.AlignRight)
        if not first:
            self.addSpacing(GRID)
        across = row(name, bar, share)
        across.setStretch(0, 1)
        self.addLayout(across)
        self.addWidget(details)
        return name, bar, share, details


class RuleLines(QVBoxLayout):
    """Rules with their shares, the deciding one first, each with a link to its setting."""

    def __init__(self, setting_wanted: SignalInstance, *, imagined: bool = False) -> None:
        """`imagined` rules may take several lines, and show their names in tooltips."""
        super().__init__()
        self._wanted, self._imagined = setting_wanted, imagined
        self.setSpacing(4)

    def show_rules(self, rules: Sequence[RuleRow]) -> None:
        emptied(self)
        for place, rule in enumerate(rules):
            share = label(rule.share, wrap=False)
            share.setFixedWidth(56)
            sentence = label(rule.sentence, "soft" if place else "", wrap=self._imagined)
            line = row(share, sentence)
            if self._imagined:
                sentence.setToolTip(rule.name)
                line.setStretch(1, 1)
            else:
                line.addStretch(1)
            if rule.key:
                line.addWidget(self._link(rule))
            self.addLayout(line)

    def _link(self, rule: RuleRow) -> QPushButton:
        return setting_link(rule.sentence, lambda: self._wanted.emit(rule.key))


def setting_link(rule: str, clicked: Callable[[], None]) -> QPushButton:
    """A link to the setting of a rule; its accessible name is the rule's name or sentence."""
    translate = QCoreApplication.translate
    made = button(translate("SettingLink", "Setting"), "flat", clicked)
    made.setAccessibleName(filled(translate("SettingLink", "Setting of the rule: %1"), rule))
    return made
