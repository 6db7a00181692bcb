"""A text that is shown before it leaves this computer: read it, copy it, save it. It sends nothing."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit, QVBoxLayout, QWidget

from skep_gui.widgets.parts import button, label, row


class TextDialog(QDialog):
    save_wanted = Signal(str, str)
    """Path and text."""

    def __init__(self, title: str, explained: str, file: str, parent: QWidget | None = None) -> None:
        """`file` is the name offered for saving."""
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
        self.copy, self.save = button(self.tr("Copy")), button(self.tr("Save …"), "primary")
        self.leave = button(self.tr("Close"))
        self.copy.clicked.connect(self._copy)
        self.save.clicked.connect(self._save)
        self.leave.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 24, 24, 24)
        layout.setSpacing(12)
        for each in (self.title, self.explained, self.text, self.said):
            layout.addWidget(each, 1 if each is self.text else 0)
        layout.addLayout(row(self.copy, self.save, None, self.leave))
        self.show_text("")

    def show_text(self, text: str) -> None:
        """Empty while there is none yet."""
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
