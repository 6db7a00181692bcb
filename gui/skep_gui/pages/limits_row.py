"""The setting for limits of single cards as a row of a form: four numbers for each card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QWidget

from skep.core.settings.device_limits import read, written
from skep_gui.pages.setting_row import Number, SettingRow
from skep_gui.widgets.parts import breakable, column, emptied, grid, label, row
from skep_gui.words.settings import Choices, Row


@dataclass(frozen=True)
class Field:
    """One limit: its unit as in the setting and as shown, its bounds, and the value that stands for no limit."""

    unit: str
    suffix: str
    least: float
    most: float
    none: float
    step: float = 1.0


class LimitField(Number):
    """A number field for one limit: the value for none is below the least one, or the largest one."""

    def __init__(self, field: Field, none: str) -> None:
        super().__init__()
        self._field = field
        self.setDecimals(1 if field.unit == "GB" else 0)
        self.setRange(min(field.least, field.none), field.most)
        self.setSingleStep(field.step)
        self.setSuffix(field.suffix)
        self.setSpecialValueText(none if field.none < field.least else "")

    def limit(self) -> float | None:
        """The limit that is entered; None for none."""
        return None if round(self.value() - self._field.none, 1) == 0 else self.value()

    def show_limit(self, limit: float | None) -> None:
        self.setValue(self._field.none if limit is None else limit)

    def stepBy(self, steps: int) -> None:
        field = self._field
        if field.none < field.least and steps > 0 and self.value() < field.least:
            self.setValue(field.least)
        elif field.none < field.least and steps < 0 and self.value() + steps * field.step < field.least:
            self.setValue(field.none)
        else:
            super().stepBy(steps)


_FIELDS: Final = (
    Field("%", " %", 5, 100, 100, 5),
    Field("C", " °C", 50, 95, 49),
    Field("W", " W", 20, 1500, 19, 5),
    Field("GB", " GB", 0, 255, -0.1, 0.5),
)


class LimitsRow(SettingRow):
    """`row.choices` are the cards, each by its name in the setting and its name for people."""

    def _make_control(self, shown: Row) -> QWidget:
        made = QWidget()
        self._grid = grid(12, 6)
        lines = column(self._grid, spacing=0)
        lines.setContentsMargins(0, 8, 0, 0)
        made.setLayout(lines)
        self.fields: dict[tuple[str, str], LimitField] = {}
        """By the card and the unit."""
        self._cards: Choices = ()
        self._show_cards(made, shown.choices)
        return made

    def _lay_out(self, shown: Row, *, upright: bool) -> None:  # noqa: ARG002 - always below each other
        texts = column(label(shown.label), label(shown.help, "soft"), self.wrong, spacing=2)
        across = row(texts, self.reset)
        across.setStretch(0, 1)
        across.setAlignment(self.reset, Qt.AlignmentFlag.AlignTop)
        lines = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        lines.setContentsMargins(0, 4, 0, 4)
        lines.setSpacing(0)
        lines.addLayout(across)
        lines.addWidget(self.control)

    def show_row(self, shown: Row) -> None:
        super().show_row(shown)
        self._show_cards(self.control, shown.choices)
        limits = read(str(shown.value))
        for (card, unit), field in self.fields.items():
            if not field.hasFocus():
                field.show_limit(limits.get(card, {}).get(unit))

    def _show_cards(self, control: QWidget, cards: Choices) -> None:
        if cards == self._cards and self.fields:
            return
        self._cards = cards
        self.fields.clear()
        emptied(self._grid)
        headings = self._headings()
        for place, heading in enumerate(headings):
            self._grid.addWidget(label(heading, "soft", wrap=False), 0, place)
        for number, (card, name) in enumerate(cards):
            self._grid.addWidget(label(breakable(name)), 2 * number + 1, 0, 1, len(_FIELDS))
            for place, field in enumerate(_FIELDS):
                made = self._number_of(field)
                made.setAccessibleName(f"{name}: {headings[place]}")
                self.fields[card, field.unit] = made
                self._grid.addWidget(made, 2 * number + 2, place)
        if self.fields:
            control.setFocusProxy(next(iter(self.fields.values())))

    def _headings(self) -> tuple[str, str, str, str]:
        return self.tr("Share"), self.tr("Temperature"), self.tr("Power"), self.tr("Memory left free")

    def _number_of(self, field: Field) -> LimitField:
        made = LimitField(field, self.tr("as for all"))
        made.editingFinished.connect(self._collect)
        return made

    def _collect(self) -> None:
        limits = {card: dict(numbers) for card, numbers in read(str(self.row.value)).items()}
        for (card, unit), field in self.fields.items():
            numbers, limit = limits.setdefault(card, {}), field.limit()
            numbers.pop(unit, None)
            if limit is not None:
                numbers[unit] = limit
        self._offer(written(dict(sorted(limits.items()))))
