"""The page Settings: a form made from the settings' own metadata, with a search. It holds no setting itself."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLineEdit, QVBoxLayout

from skep.core.settings import Value
from skep_gui.parts import Card, Page, button, emptied, label, row
from skep_gui.present.settings_form import SettingsForm
from skep_gui.setting_row import SettingRow


class SettingsPage(Page):
    changed = Signal(str, object)
    first_run_wanted = Signal()
    diagnostics_wanted = Signal()

    def __init__(self, words: SettingsForm) -> None:
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
        self.top.addWidget(self.search)
        self._groups = QVBoxLayout()
        self._groups.setSpacing(16)
        self.body.addLayout(self._groups)
        self.again = button(self.tr("Show the first steps again"))
        self.again.clicked.connect(self.first_run_wanted)
        self.diagnose = button(self.tr("Diagnostics …"))
        self.diagnose.clicked.connect(self.diagnostics_wanted)
        self.body.addLayout(row(self.again, self.diagnose, None))
        self.body.addStretch(1)

    def showEvent(self, event: QShowEvent) -> None:
        """The form is made when it is first seen: it is the largest page, and most days nobody opens it."""
        super().showEvent(event)
        if not self.rows:
            self._build()

    def show_settings(self, values: Mapping[str, Value]) -> None:
        if values == self._values:
            return
        self._values = values
        for name, each in self.rows.items():
            each.show_row(self._words.row(each.row.setting, values))
            assert name == each.row.setting.key

    def reveal(self, key: str) -> None:
        """Bring one setting into view, as from a rule that holds."""
        self.search.clear()
        if not self.rows:
            self._build()
        if found := self.rows.get(key):
            self.ensureWidgetVisible(found, 0, 80)
            found.control.setFocus()

    def _build(self) -> None:
        emptied(self._groups)
        self.rows = {}
        groups = self._words.groups(self._values, self.search.text())
        for group in groups:
            card = Card(group.title)
            for shown in group.rows:
                made = SettingRow(shown)
                made.changed.connect(self.changed)
                self.rows[shown.setting.key] = made
                card.body.addWidget(made)
            self._groups.addWidget(card)
        if not groups:
            none = self.tr("No setting has “%1” in its words.").replace("%1", self.search.text())
            self._groups.addWidget(label(none, "soft"))
