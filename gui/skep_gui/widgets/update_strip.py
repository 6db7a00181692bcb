"""The strip about an update of skep: calm, above the strip of problems, only while there is something to say."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar

from skep_gui.widgets.strip import Strip
from skep_gui.words.notices import UpdateView

FULL = 1000


class UpdateStrip(Strip):
    acted = Signal()
    closed = Signal()
    """Later, Close or Cancel, whatever the button says now."""

    def __init__(self) -> None:
        super().__init__("news", act="primary", spacing=4)
        self.act_button.clicked.connect(self.acted)
        self.close_button.clicked.connect(self.closed)
        self.bar = QProgressBar()
        self.bar.setRange(0, FULL)
        self.bar.setTextVisible(False)
        self.texts.insertWidget(1, self.bar)

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
