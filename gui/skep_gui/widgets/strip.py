"""What the strips below the window have in common: a title, a line below, one way on and one to close it. Hidden at first."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QVBoxLayout

from skep_gui.widgets.parts import button, label, row


class Strip(QFrame):
    """`texts` holds the title and the hint; `spacing` is between them."""

    def __init__(self, name: str, *, act: str = "", spacing: int = 2) -> None:
        """`name` and `act` are those that the theme knows the strip and its first button by."""
        super().__init__()
        self.setObjectName(name)
        self.title, self.hint = label("", "heading", select=True), label("", "soft", select=True)
        self.act_button, self.close_button = button("", act), button("")
        self.texts = QVBoxLayout()
        self.texts.setSpacing(spacing)
        self.texts.addWidget(self.title)
        self.texts.addWidget(self.hint)
        across = row()
        across.addLayout(self.texts, 1)
        across.addWidget(self.act_button)
        across.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 12, 16, 12)
        layout.addLayout(across)
        self.hide()
