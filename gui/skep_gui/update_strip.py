"""The strip about an update of skep: calm, above the strip of problems, only while there is something to say."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QProgressBar, QVBoxLayout

from skep_gui.parts import button, label, row
from skep_gui.present.updates import UpdateView

FULL = 1000


class UpdateStrip(QFrame):
    acted = Signal()
    closed = Signal()
    """Later, Close or Cancel, whatever the button says now."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("news")
        self.title, self.hint = label("", "heading", select=True), label("", "soft", select=True)
        self.act_button, self.close_button = button("", "primary"), button("")
        self.act_button.clicked.connect(self.acted)
        self.close_button.clicked.connect(self.closed)
        self.bar = QProgressBar()
        self.bar.setRange(0, FULL)
        self.bar.setTextVisible(False)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        for each in (self.title, self.bar, self.hint):
            texts.addWidget(each)
        across = row()
        across.addLayout(texts, 1)
        across.addWidget(self.act_button)
        across.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 12, 16, 12)
        layout.addLayout(across)
        self.hide()

    def show_update(self, view: UpdateView | None) -> None:
        if view is not None:
            self.title.setText(view.title)
            self.hint.setText(view.hint)
            self.hint.setVisible(bool(view.hint))
            self.act_button.setText(view.action)
            self.act_button.setVisible(bool(view.action))
            self.close_button.setText(view.close)
            self.bar.setVisible(view.part is not None)
            self.bar.setValue(round(FULL * (view.part or 0.0)))
            self.bar.setAccessibleName(view.title)
        self.setVisible(view is not None)
