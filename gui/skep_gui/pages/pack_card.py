"""The card about the compute pack on the page Settings; hidden where skep needs none."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar

from skep_gui.widgets.parts import Card, button, label, row
from skep_gui.words.packs import PackView

FULL: Final = 1000


class PackCard(Card):
    fetch_wanted = Signal()
    cancel_wanted = Signal()
    free_wanted = Signal()

    def __init__(self) -> None:
        super().__init__(" ")
        self.heading.setText(self.tr("Compute pack"))
        self.sentence, self.details = label(""), label("", "soft", select=True)
        self.bar = QProgressBar()
        self.bar.setRange(0, FULL)
        self.bar.setTextVisible(False)
        self.fetch = button("", "primary", self.fetch_wanted)
        self.cancel = button("", clicked=self.cancel_wanted)
        self.free = button("", clicked=self.free_wanted)
        self.free.setAccessibleDescription(self.tr("Removes the compute packs that are not used"))
        self.add(self.sentence, self.bar, self.details, row(self.fetch, self.cancel, self.free, None))
        self.show_pack(None)

    def show_pack(self, view: PackView | None) -> None:
        """None hides the card."""
        self.setVisible(view is not None)
        if view is None:
            return
        self.sentence.setText(view.sentence)
        self.details.setText("\n".join(view.details))
        self.details.setVisible(bool(view.details))
        self.bar.setVisible(view.part is not None)
        self.bar.setValue(round(FULL * (view.part or 0.0)))
        self.bar.setAccessibleName(view.sentence)
        for each, text in ((self.fetch, view.fetch), (self.cancel, view.cancel), (self.free, view.free)):
            each.setText(text)
            each.setVisible(bool(text))
