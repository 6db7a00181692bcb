"""The page Settings: a form made from the settings' own metadata, with a search. It holds no setting itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import Text
from skep_gui.pages.page_kind import PageKind, Requests
from skep_gui.pages.rule_tester import RuleTester
from skep_gui.pages.setting_row import SettingRow
from skep_gui.widgets.history import History
from skep_gui.widgets.parts import Card, Page, button, emptied, label, row, tip
from skep_gui.words.settings import PAIR, Choices, Row, RuleWords, SettingsForm
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation


@dataclass(frozen=True)
class Place:
    """Where a person was on the page: what was searched for, how far down, and the setting that had the focus."""

    values: Mapping[str, Value]
    search: str
    scrolled: int
    focused: str
    imagined: tuple[str, ...] = ()


class SettingsPage(Page):
    changed = Signal(str, object)
    first_run_wanted = Signal()
    diagnostics_wanted = Signal()
    update_wanted = Signal()
    older_wanted = Signal()
    seen = Signal()
    """Somebody looks at it now."""

    def __init__(self, words: SettingsForm, tester: RuleWords) -> None:
        super().__init__(self.tr("Settings"))
        self._words = words
        self._values: Mapping[str, Value] = {}
        self.rows: dict[str, SettingRow] = {}
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search settings"))
        self.search.setAccessibleName(self.tr("Search settings"))
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(260)
        self.search.textChanged.connect(self._build)
        self.what_if = button(self.tr("What if …"), "flat")
        self.what_if.setAccessibleDescription(self.tr("Goes to the rule tester"))
        self.what_if.clicked.connect(self._show_tester)
        self.top.addWidget(self.what_if)
        self.top.addWidget(self.search)
        self._groups = QVBoxLayout()
        self._groups.setSpacing(16)
        self.body.addLayout(self._groups)
        self.tester = RuleTester(tester)
        self.tester.setting_wanted.connect(self.reveal)
        self.body.addWidget(self.tester)
        self.again = button(self.tr("Show the first steps again"))
        self.again.clicked.connect(self.first_run_wanted)
        self.diagnose = button(self.tr("Diagnostics …"))
        self.diagnose.clicked.connect(self.diagnostics_wanted)
        self.newer = button(self.tr("Look for updates"))
        self.newer.clicked.connect(self.update_wanted)
        self.older = button("")
        self.older.clicked.connect(self.older_wanted)
        self.older.hide()
        self.body.addLayout(row(self.again, self.diagnose, None))
        self.body.addLayout(row(self.newer, self.older, None))
        self.body.addStretch(1)

    def showEvent(self, event: QShowEvent) -> None:
        """The form is made when it is first seen: it is the largest page, and most days nobody opens it."""
        super().showEvent(event)
        if not self.rows:
            self._build()
        self.seen.emit()

    def show_settings(self, values: Mapping[str, Value]) -> None:
        if values == self._values:
            return
        self._values = values
        self._show_rows()

    def _show_rows(self) -> None:
        for each in self.rows.values():
            each.show_row(self._words.row(each.row.setting, self._values))

    def show_lacking(self, lacking: Mapping[str, Text]) -> None:
        """By key, why a setting cannot be obeyed on this computer."""
        if lacking != self._words.lacking:
            self._words.lacking = lacking
            if self.rows:
                self._build()

    def show_offered(self, offered: Mapping[str, Choices]) -> None:
        """By key, what this computer has to choose from."""
        self._words.offered = offered
        self._show_rows()

    def show_updates(self, lacking: str, older: str) -> None:
        """Why nothing newer can be looked for, "" where it can; the words for going back, "" where there is nothing."""
        self.newer.setEnabled(not lacking)
        tip(self.newer, lacking)
        self.older.setText(older)
        self.older.setVisible(bool(older))

    def _row(self, shown: Row, *, upright: bool = False) -> SettingRow:
        made = SettingRow(shown, self._words, upright=upright)
        made.changed.connect(self.changed)
        self.rows[shown.setting.key] = made
        return made

    def _show_tester(self) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(min(bar.maximum(), self.tester.y() - 16))
        next(iter(self.tester.boxes.values())).setFocus()

    def reveal(self, key: str) -> None:
        """Bring one setting into view, as from a rule that holds."""
        self.search.clear()
        if not self.rows:
            self._build()
        if found := self.rows.get(key):
            self.ensureWidgetVisible(found, 0, 80)
            found.control.setFocus()

    def place(self) -> Place:
        focused = next((key for key, each in self.rows.items() if each.control is self.focusWidget()), "")
        return Place(self._values, self.search.text(), self.verticalScrollBar().value(), focused, self.tester.chosen())

    def go_back_to(self, place: Place) -> None:
        """Take up where another page of the same settings was left."""
        self._values = place.values
        self.search.setText(place.search)
        self.tester.choose(place.imagined)

        def settle() -> None:
            if focused := self.rows.get(place.focused):
                focused.control.setFocus()
            self.verticalScrollBar().setValue(place.scrolled)

        QTimer.singleShot(0, self, settle)

    def _build(self) -> None:
        emptied(self._groups)
        self.rows = {}
        groups = self._words.groups(self._values, self.search.text())
        for group in groups:
            card = Card(group.title)
            pair = [self._row(each, upright=True) for each in paired(group.rows)]
            if pair:
                card.body.addLayout(side_by_side(pair))
            for shown in group.rows:
                if shown.setting.key not in self.rows:
                    card.body.addWidget(self._row(shown))
            self._groups.addWidget(card)
        if not groups:
            none = filled(self.tr("No setting has “%1” in its words."), self.search.text())
            self._groups.addWidget(label(none, "soft"))


def paired(rows: Sequence[Row]) -> list[Row]:
    """The two limits that belong side by side, where both are to be shown."""
    found = {each.setting.key: each for each in rows if each.setting.key in PAIR}
    return [found[key] for key in PAIR] if len(found) == len(PAIR) else []


def side_by_side(pair: Sequence[QWidget]) -> QHBoxLayout:
    across = QHBoxLayout()
    across.setSpacing(32)
    for each in pair:
        across.addWidget(each, 1)
    return across


def _make(translation: Translation) -> SettingsPage:
    return SettingsPage(translation.settings, translation.tester)


def _connect(page: SettingsPage, requests: Requests) -> None:
    page.changed.connect(requests.change_setting)
    page.first_run_wanted.connect(requests.first_run)
    page.diagnostics_wanted.connect(requests.diagnose)
    page.update_wanted.connect(requests.look_for_update)
    page.older_wanted.connect(requests.go_back_to_older)
    page.seen.connect(requests.offer_devices)


def _show(page: SettingsPage, snapshot: Snapshot, _history: History, now: float) -> None:
    page.show_settings(snapshot.settings)
    page.tester.show_snapshot(snapshot, now)


PAGE: Final = PageKind(_make, _connect, _show)
