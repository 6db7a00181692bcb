"""The connection doctor in the app: runs the checks in the background, and shows each finding when it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from skep_gui.app.background import Background
from skep_gui.words.doctor import Doctor

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from skep.core.findings import Finding
    from skep_gui.app.controller import Controller
    from skep_gui.pages.doctor_dialog import DoctorDialog


class ConnectionDoctor(QObject):
    _found = Signal(int, object)
    """The number of the examination, and a Finding; sent from a background thread."""

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self.dialog: DoctorDialog | None = None
        self._background = background
        self._number = 0
        self._found.connect(self._add, Qt.ConnectionType.QueuedConnection)

    def open(self, controller: Controller, words: Doctor, project: tuple[str, str], window: QWidget | None) -> None:
        """Examine the project with this id and title, or with ("", "") this computer only."""
        from skep_gui.pages.doctor_dialog import DoctorDialog  # noqa: PLC0415 - seldom seen

        if self.dialog is not None:
            self.dialog.close()
        self.dialog = dialog = DoctorDialog(words, project[1], window)
        dialog.finished.connect(lambda _: self.stop())
        dialog.wanted.connect(lambda: self._examine(controller, project[0], dialog))
        self._examine(controller, project[0], dialog)
        dialog.open()

    def _examine(self, controller: Controller, project_id: str, dialog: DoctorDialog) -> None:
        self.stop()
        number = self._number
        dialog.begin()

        def work() -> None:
            for finding in controller.examine(project_id, lambda: self._number != number):
                self._found.emit(number, finding)

        def ended() -> None:
            if self._number == number:
                dialog.end()

        self._background.run(work, lambda _: ended(), dialog.refuse, slow=True)

    def stop(self) -> None:
        """End the examination that runs, if one does, within a moment: a program that ends waits for its threads."""
        self._number += 1

    def _add(self, number: int, finding: Finding) -> None:
        if self.dialog is not None and self._number == number:
            self.dialog.add(finding)
