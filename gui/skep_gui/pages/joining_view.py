"""The five stages of joining as a checklist, with a Cancel that works at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QProgressBar

from skep_gui.widgets.parts import Card, button, label, row, toned
from skep_gui.words.now import Mark, StageRow

_SIGNS: Final = {Mark.DONE: "✓", Mark.UNDER_WAY: "→", Mark.TO_COME: "·", Mark.FAILED: "!"}
_TONES: Final = {Mark.DONE: "well", Mark.UNDER_WAY: "gentle", Mark.TO_COME: "soft", Mark.FAILED: "problem"}
STAGES: Final = 5


class JoiningView(Card):
    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__(" ")
        self._rows: list[tuple[QLabel, QLabel, QProgressBar, QLabel]] = []
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(10)
        for index in range(STAGES):
            sign, name, bar, detail = (
                label(wrap=False),
                label(wrap=False),
                QProgressBar(),
                label("", "soft", wrap=False),
            )
            bar.setTextVisible(False)
            bar.setFixedWidth(160)
            sign.setFixedWidth(16)
            sign.setAlignment(Qt.AlignmentFlag.AlignCenter)
            for column, widget in enumerate((sign, name, bar, detail)):
                grid.addWidget(widget, index, column)
            self._rows.append((sign, name, bar, detail))
        grid.setColumnStretch(3, 1)
        self.body.addLayout(grid)
        self.cancel = button(self.tr("Cancel"))
        self.cancel.clicked.connect(self.cancelled)
        self.body.addSpacing(4)
        self.body.addLayout(row(self.cancel, None))

    def show_stages(self, heading: str, stages: Sequence[StageRow]) -> None:
        self.heading.setText(heading)
        for (sign, name, bar, detail), stage in zip(self._rows, stages, strict=True):
            sign.setText(_SIGNS[stage.mark])
            toned(sign, _TONES[stage.mark])
            name.setText(stage.name)
            toned(name, "soft" if stage.mark is Mark.TO_COME else "")
            under_way = stage.mark is Mark.UNDER_WAY
            bar.setVisible(under_way)
            # an unknown fraction is an empty bar: a bar that runs to and fro would only fidget
            bar.setRange(0, 1000)
            bar.setValue(round((stage.fraction or 0.0) * 1000))
            bar.setAccessibleName(stage.name)
            detail.setText(stage.detail if under_way else "")
