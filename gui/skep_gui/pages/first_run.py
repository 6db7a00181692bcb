"""The first steps: the device that was found, suggested limits, a project. Each can be skipped and shown again."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QDialog, QRadioButton, QStackedWidget, QVBoxLayout, QWidget

from skep.core.device import Device
from skep_gui.widgets.parts import Card, Part, Scrolled, button, column, label, row
from skep_gui.words.projects import PRACTICE_TITLE
from skep_gui.words.settings import Devices
from skep_gui.words.speaker import filled

PRESET = 1
"""Balanced, the default preset."""
SIZE = (560, 552)
"""Shows everything without scrolling, and fits with its frame on a screen 600 pixels high."""


class FirstRun(QDialog):
    limits_chosen = Signal(object)
    """Settings by key."""
    practice_wanted = Signal()
    projects_wanted = Signal()

    def __init__(self, words: Devices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("First steps with skep"))
        self.setMinimumSize(560, 420)
        self.resize(*SIZE)
        self._words, self._presets = words, words.presets()
        self.steps = QStackedWidget()
        for step in (self._device_step(), self._limits_step(), self._project_step()):
            self.steps.addWidget(Scrolled(step))
        self.skip = button(self.tr("Skip"), "flat", self.reject)
        self.back = button(self.tr("Back"), clicked=lambda: self._go(-1))
        self.next = button(self.tr("Next"), "primary", lambda: self._go(+1))
        self.place = label("", "soft", wrap=False)
        layout = column(self.steps, row(self.skip, self.place, None, self.back, self.next), spacing=16)
        layout.setContentsMargins(24, 24, 24, 16)
        layout.setStretch(0, 1)
        self.setLayout(layout)
        self._go(0)

    def _step(self, title: str, text: str, *parts: Part) -> QWidget:
        step = QWidget()
        body = column(label(title, "title"), label(text), *parts, None, spacing=12)
        body.setContentsMargins(0, 0, 0, 0)
        step.setLayout(body)
        return step

    def _device_step(self) -> QWidget:
        self.found = label(self.tr("Looking …"), "sentence")
        self._devices = QVBoxLayout()
        return self._step(self.tr("What this computer can do"), "", self.found, self._devices)

    def _limits_step(self) -> QWidget:
        text = self.tr("How much may skep compute? Every limit can be changed at any time in the settings.")
        cards = []
        self.presets = QButtonGroup(self)
        for place, preset in enumerate(self._presets):
            choice = QRadioButton(preset.name)
            choice.setAccessibleDescription(f"{preset.meaning} {preset.using}. {preset.away}.")
            choice.setChecked(place == PRESET)
            self.presets.addButton(choice, place)
            limits = row(label(preset.using, wrap=False), label(preset.away, wrap=False), spacing=24, even=True)
            cards.append(Card("", choice, label(preset.meaning, "soft"), limits))
        return self._step(self.tr("Your limits"), text, *cards)

    def _project_step(self) -> QWidget:
        text = self.tr(
            "skep trains one project at a time. The practice swarm shows how skep works, on this computer only."
        )
        little = label(self.tr("A small model learns to write Python. No data leaves this computer."), "soft")
        self.practice = button(self.tr("Start and join"), "primary", lambda: self._finish(self.practice_wanted))
        given = label(self.tr("Add one by a file or a link that somebody gave you."), "soft")
        look = button(self.tr("Go to Projects"), clicked=lambda: self._finish(self.projects_wanted))
        practice = Card(self._words.said(PRACTICE_TITLE), little, self.practice)
        return self._step(self.tr("A project"), text, practice, Card(self.tr("Another project"), given, look))

    def show_devices(self, devices: Sequence[Device]) -> None:
        self.found.setText(self._words.sentence(devices))
        for shown in self._words.rows(devices):
            detail = label(shown.detail, tone="well" if shown.usable else "soft")
            self._devices.addWidget(Card(shown.name, detail))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.next.setFocus()

    def _go(self, by: int) -> None:
        if self.steps.currentIndex() == 1 and by > 0:
            self.limits_chosen.emit(self._presets[self.presets.checkedId()].values)
        self.steps.setCurrentIndex(self.steps.currentIndex() + by)
        index, count = self.steps.currentIndex(), self.steps.count()
        self.back.setVisible(index > 0)
        self.next.setVisible(index < count - 1)
        self.place.setText(filled(self.tr("%1 of %2"), str(index + 1), str(count)))
        self.skip.setText(self.tr("Close") if index == count - 1 else self.tr("Skip"))
        if self.next.isVisible():
            self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def _finish(self, wanted: SignalInstance) -> None:
        self.accept()
        wanted.emit()
