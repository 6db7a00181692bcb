"""What is shown when skep cannot start here: the sentence, and for damaged settings a way on. It opens nothing itself."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QPushButton

from skep_gui.widgets.parts import tip


class StartRefusal(QMessageBox):
    """Ends with `finished`; `begins_anew` then tells whether the defaults were chosen."""

    def __init__(self, title: str, hint: str, *, mendable: bool) -> None:
        """`mendable` offers to begin with the default settings."""
        super().__init__(QMessageBox.Icon.NoIcon, "skep", "")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(title)
        self.setInformativeText(hint)
        self.anew: QPushButton | None = None
        if mendable:
            self.anew = self.addButton(self.tr("Begin with the defaults"), QMessageBox.ButtonRole.AcceptRole)
            tip(self.anew, self.tr("The damaged file is kept beside the new one."))
        self.end = self.addButton(self.tr("Quit"), QMessageBox.ButtonRole.RejectRole)
        self.setEscapeButton(self.end)
        self.setDefaultButton(self.end)

    @property
    def begins_anew(self) -> bool:
        return self.anew is not None and self.clickedButton() is self.anew
