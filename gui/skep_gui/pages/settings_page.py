"""The page Settings: a form made from the settings' metadata, with a search, and the rule tester. It stores no
setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit

from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import Text
from skep_gui.pages.limits_row import LimitsRow
from skep_gui.pages.pack_card import PackCard
from skep_gui.pages.registry import PageKind, Requests
from skep_gui.pages.setting_row import SettingRow
from skep_gui.widgets.parts import Card, Page, button, column, emptied, grid, label, named, row, tip
from skep_gui.widgets.rows import RuleLines
from skep_gui.words.now import History
from skep_gui.words.settings import LIMITS, PAIR, Answer, Choices, Row, RuleWords, without_opposite
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation

NARROW = 620
"""Pixels; in a narrower page the rule tester's boxes form one column."""


@dataclass(frozen=True)
class Place:
    """The user's place on the page: search text, scroll position, and the setting that had the focus."""

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
    """The page is shown."""

    def __init__(self, translation: Translation) -> None:
        super().__init__(self.tr("Settings"))
        self._words = translation.settings
        self._values: Mapping[str, Value] = {}
        self.rows: dict[str, SettingRow] = {}
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search settings"))
        self.search.setAccessibleName(self.tr("Search settings"))
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(260)
        self.search.textChanged.connect(self._build)
        self.what_if = button(self.tr("What if …"), "flat", self._show_tester)
        self.what_if.setAccessibleDescription(self.tr("Goes to the rule tester"))
        self.top.addWidget(self.what_if)
        self.top.addWidget(self.search)
        self._groups = column(spacing=16)
        self.tester = RuleTester(translation.tester)
        self.tester.setting_wanted.connect(self.reveal)
        self.pack = PackCard()
        self.again = button(self.tr("Show the first steps again"), clicked=self.first_run_wanted)
        self.diagnose = button(self.tr("Diagnostics …"), clicked=self.diagnostics_wanted)
        self.newer = button(self.tr("Look for updates"), clicked=self.update_wanted)
        self.older = button("", clicked=self.older_wanted)
        self.older.hide()
        self.add(
            self._groups,
            self.tester,
            self.pack,
            row(self.again, self.diagnose, None),
            row(self.newer, self.older, None),
            None,
        )

    def connect_to(self, requests: Requests) -> None:
        self.changed.connect(requests.change_setting)
        self.first_run_wanted.connect(requests.first_run)
        self.diagnostics_wanted.connect(requests.diagnose)
        self.update_wanted.connect(requests.look_for_update)
        self.older_wanted.connect(requests.go_back_to_older)
        self.seen.connect(requests.offer_devices)
        self.seen.connect(requests.look_at_packs)
        self.pack.fetch_wanted.connect(requests.fetch_pack)
        self.pack.cancel_wanted.connect(requests.cancel_pack)
        self.pack.free_wanted.connect(requests.free_packs)

    def showEvent(self, event: QShowEvent) -> None:
        """The form is made when first shown: it is the largest page and rarely opened."""
        super().showEvent(event)
        if not self.rows:
            self._build()
        self.seen.emit()

    def show_snapshot(self, snapshot: Snapshot, _history: History, now: float) -> None:
        """`now` is wall clock seconds."""
        if snapshot.settings != self._values:
            self._values = snapshot.settings
            if self.rows and not self.search.text() and self._words.concerned(self._values) != (LIMITS in self.rows):
                self._build_again()
            self._show_rows()
        self.tester.show_snapshot(snapshot, now)

    def _show_rows(self) -> None:
        for each in self.rows.values():
            each.show_row(self._words.row(each.row.setting, self._values))

    def show_lacking(self, lacking: Mapping[str, Text]) -> None:
        """`lacking`: by key, why a setting has no effect on this computer."""
        if lacking != self._words.lacking:
            self._words.lacking = lacking
            if self.rows:
                self._build()

    def show_offered(self, offered: Mapping[str, Choices]) -> None:
        """`offered`: by key, the choices on this computer."""
        changed = offered.get(LIMITS, ()) != self._words.offered.get(LIMITS, ())
        self._words.offered = offered
        if changed and self.rows:
            self._build_again()
        self._show_rows()

    def _build_again(self) -> None:
        place = self.place()
        self._build()
        self.go_back_to(place)

    def show_updates(self, lacking: str, older: str) -> None:
        """Why no update can be looked for, "" if it can; and the text of the button that goes back, "" if there is no
        version.
        """
        self.newer.setEnabled(not lacking)
        tip(self.newer, lacking)
        self.older.setText(older)
        self.older.setVisible(bool(older))

    def _row(self, shown: Row, *, upright: bool = False) -> SettingRow:
        kind = LimitsRow if shown.setting.key == LIMITS else SettingRow
        made = kind(shown, self._words, upright=upright)
        made.changed.connect(self.changed)
        self.rows[shown.setting.key] = made
        return made

    def _show_tester(self) -> None:
        bar = self.verticalScrollBar()
        bar.setValue(min(bar.maximum(), self.tester.y() - 16))
        next(iter(self.tester.boxes.values())).setFocus()

    def reveal(self, key: str) -> None:
        """Scroll to one setting, such as that of a rule in effect."""
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
        """Restore the place where another page of the same settings was left."""
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
            if pair := [self._row(each, upright=True) for each in paired(group.rows)]:
                card.add(row(*pair, spacing=32, even=True))
            card.add(*(self._row(each) for each in group.rows if each.setting.key not in self.rows))
            self._groups.addWidget(card)
        if not groups:
            none = filled(self.tr("No setting has “%1” in its words."), self.search.text())
            self._groups.addWidget(label(none, "soft"))


def paired(rows: Sequence[Row]) -> list[Row]:
    """The two limits that are shown side by side, if both are visible."""
    found = {each.setting.key: each for each in rows if each.setting.key in PAIR}
    return [found[key] for key in PAIR] if len(found) == len(PAIR) else []


class RuleTester(Card):
    """What would happen if …: conditions to assume, the resulting sentence, and a link to its setting."""

    setting_wanted = Signal(str)

    def __init__(self, words: RuleWords) -> None:
        super().__init__(" ")
        self.heading.setText(self.tr("What would happen if …"))
        self._words = words
        self._snapshot, self._now = Snapshot(), 0.0
        self._shown: Answer | None = None
        self._columns = 0
        self.boxes: dict[str, QCheckBox] = {}
        self._grid = grid(16, 2, wide=0)
        for word, text in words.cases().items():
            self.boxes[word] = box = QCheckBox(text)
            box.clicked.connect(lambda on, word=word: self._imagine(word, on=on))
        self._arrange(2)
        self.sentence = label("", "sentence")
        self.sentence.setContentsMargins(0, 8, 0, 0)
        self._consequences = RuleLines(self.setting_wanted, imagined=True)
        self.add(self._grid, self.sentence, self._consequences)
        self._answer()

    def chosen(self) -> tuple[str, ...]:
        return tuple(word for word, box in self.boxes.items() if box.isChecked())

    def choose(self, words: tuple[str, ...]) -> None:
        for word, box in self.boxes.items():
            box.setChecked(word in words)
        self._answer()

    def show_snapshot(self, snapshot: Snapshot, now: float) -> None:
        """`now` is wall clock seconds. A changed setting updates the answer immediately."""
        self._snapshot, self._now = snapshot, now
        if self.isVisible() and self.chosen():
            self._answer()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._answer()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(1 if event.size().width() < NARROW else 2)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for place, box in enumerate(self.boxes.values()):
            self._grid.addWidget(box, place // columns, place % columns)
        self._grid.setColumnStretch(1, 1 if columns > 1 else 0)

    def _imagine(self, word: str, *, on: bool) -> None:
        words = tuple(each for each in self.chosen() if each != word)
        self.choose((*without_opposite(words, word), word) if on else words)

    def _answer(self) -> None:
        zone = datetime.fromtimestamp(self._now, UTC).astimezone().tzinfo or UTC
        answer = self._words.answer(self._snapshot, self.chosen(), self._now, zone)
        if answer == self._shown:
            return
        self._shown = answer
        self.sentence.setText(answer.sentence)
        named(self.sentence, "sentence" if answer.consequences else "soft")
        self._consequences.show_rules(answer.consequences)
        for remark in answer.remarks:
            self._consequences.addWidget(label(remark, "soft"))


PAGE: Final = PageKind(SettingsPage, SettingsPage.connect_to, SettingsPage.show_snapshot)
