"""Asks whether a secret may lie in a file that is not encrypted. Only the one button that says so is a yes."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from skep_gui.widgets.parts import button, label, row
from skep_gui.words.speaker import filled


class KeyringConsent(QDialog):
    given = Signal()

    def __init__(self, refusal: str, folder: str, parent: QWidget | None = None) -> None:
        """`refusal` is what the keyring said, `folder` where the file would lie."""
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keep the invitation without a keyring?"))
        self.setMinimumWidth(440)
        text = self.tr(
            "An invitation is kept in the system's keyring, encrypted. You can start or unlock the keyring and accept "
            "the invitation again. Or skep keeps it in a file that only you can read; it is not encrypted."
        )
        self.folder = label(filled(self.tr("The file would lie in %1."), folder), "soft", select=True)
        self.keep, self.cancel = button(self.tr("Keep it in a file")), button(self.tr("Cancel"), "primary")
        self.keep.clicked.connect(self._give)
        self.cancel.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 24, 24, 16)
        layout.setSpacing(12)
        for each in (label(refusal, "sentence"), label(text), self.folder):
            layout.addWidget(each)
        layout.addSpacing(8)
        layout.addLayout(row(None, self.keep, self.cancel))
        self.cancel.setDefault(True)
        self.cancel.setFocus()

    def _give(self) -> None:
        self.accept()
        self.given.emit()
