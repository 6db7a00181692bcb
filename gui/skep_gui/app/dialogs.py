"""Dialogs: skep cannot start, storing a secret without a keyring, and showing a text before it is saved or copied."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QMessageBox, QPlainTextEdit, QPushButton, QWidget

from skep_gui.widgets.parts import button, column, label, row, tip
from skep_gui.words.speaker import filled


class StartRefusal(QMessageBox):
    """Ends with `finished`; `begins_anew` is true if the user chose the default settings."""

    def __init__(self, title: str, hint: str, *, mendable: bool) -> None:
        """`mendable` adds a button that starts with the default settings."""
        super().__init__(QMessageBox.Icon.NoIcon, "skep", "")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(title)
        self.setInformativeText(hint)
        self.anew: QPushButton | None = None
        if mendable:
            self.anew = self.addButton(self.tr("Start with the defaults"), QMessageBox.ButtonRole.AcceptRole)
            tip(self.anew, self.tr("The damaged file is kept beside the new one."))
        self.end = self.addButton(self.tr("Quit"), QMessageBox.ButtonRole.RejectRole)
        self.setEscapeButton(self.end)
        self.setDefaultButton(self.end)

    @property
    def begins_anew(self) -> bool:
        return self.anew is not None and self.clickedButton() is self.anew


class KeyringConsent(QDialog):
    given = Signal()

    def __init__(self, refusal: str, folder: str, parent: QWidget | None = None) -> None:
        """`refusal` is the keyring's error, `folder` would hold the secret as a file."""
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keep the invitation without a keyring?"))
        self.setMinimumWidth(440)
        text = self.tr(
            "An invitation is kept in the system's keyring, encrypted. You can start or unlock the keyring and accept "
            "the invitation again. Or skep keeps it in a file that only you can read; it is not encrypted."
        )
        self.folder = label(filled(self.tr("The file would lie in %1."), folder), "soft", select=True)
        self.keep = button(self.tr("Keep it in a file"), clicked=self._give)
        self.cancel = button(self.tr("Cancel"), "primary", self.reject)
        layout = column(label(refusal, "sentence"), label(text), self.folder, spacing=12)
        layout.setContentsMargins(24, 24, 24, 16)
        layout.addSpacing(8)
        layout.addLayout(row(None, self.keep, self.cancel))
        self.setLayout(layout)
        self.cancel.setDefault(True)
        self.cancel.setFocus()

    def _give(self) -> None:
        self.accept()
        self.given.emit()


class TextDialog(QDialog):
    save_wanted = Signal(str, str)
    """Path and text."""

    def __init__(self, title: str, explained: str, file: str, parent: QWidget | None = None) -> None:
        """`file` is the suggested name for saving."""
        super().__init__(parent)
        self.setObjectName("page")
        self.setWindowTitle(title)
        self.resize(680, 480)
        self._file = file
        self.title = label(title, "title")
        self.explained, self.said = label(explained, "soft"), label("", "soft")
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setAccessibleName(title)
        self.copy = button(self.tr("Copy"), clicked=self._copy)
        self.save = button(self.tr("Save …"), "primary", self._save)
        self.leave = button(self.tr("Close"), clicked=self.reject)
        buttons = row(self.copy, self.save, None, self.leave)
        layout = column(self.title, self.explained, self.text, self.said, buttons, spacing=12)
        layout.setContentsMargins(24, 24, 24, 24)
        layout.setStretchFactor(self.text, 1)
        self.setLayout(layout)
        self.show_text("")

    def show_text(self, text: str) -> None:
        """Empty until there is a text."""
        self.text.setPlainText(text)
        for each in (self.copy, self.save):
            each.setEnabled(bool(text))

    def say(self, text: str) -> None:
        self.said.setText(text)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.say(self.tr("Copied."))

    def _save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, self.windowTitle(), self._file, self.tr("Texts (*.txt)"))
        if path:
            self.save_wanted.emit(path, self.text.toPlainText())
