"""One project as a card: what it is, who publishes it, whether it fits, what it does now, and the one next step."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from skep_gui.widgets.parts import Card, breakable, button, label, row, tip, toned, unbroken
from skep_gui.words.projects import Card as CardWords
from skep_gui.words.speaker import filled


class ProjectCard(Card):
    wanted = Signal(str)
    """The project's id: look at it, or join it."""
    leave_wanted = Signal()

    def __init__(self, words: CardWords, *, practice: bool, free: bool) -> None:
        """`free` tells that nothing else is active, so that this one may be joined."""
        super().__init__(breakable(words.title))
        badge = label(words.badge.text, "badge", wrap=False)
        toned(badge, str(words.badge.tone))
        tip(badge, words.badge.explained)
        self.body.removeWidget(self.heading)
        badge.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        head = row(self.heading, badge)
        head.setStretch(0, 1)
        self.body.addLayout(head)
        self.body.addWidget(label(breakable(words.summary)))
        self.body.addWidget(label(breakable(words.publisher), "soft"))
        self.body.addWidget(label(unbroken(" · ".join(filter(None, (words.needs, words.traffic)))), "soft"))
        if not words.joinable and words.badge.explained:
            reason = label(breakable(words.badge.explained))
            toned(reason, "problem")
            self.body.addWidget(reason)
        self.state = label(words.state, "", wrap=False)
        toned(self.state, "well" if words.active else "soft")
        self.action = self._action(words, practice=practice, free=free)
        self.body.addSpacing(4)
        self.body.addLayout(row(self.action, self.state, None))

    def _action(self, words: CardWords, *, practice: bool, free: bool) -> QWidget:
        if words.active:
            leave = button(self.tr("Leave"))
            leave.setAccessibleName(filled(self.tr("Leave %1"), words.title))
            leave.clicked.connect(self.leave_wanted)
            return leave
        look = button(self._invitation(words, practice=practice), "primary" if practice else "")
        look.setAccessibleName(f"{look.text()}: {words.title}")
        look.setEnabled(free or not practice)
        if not look.isEnabled():
            look.setToolTip(self.tr("Leave the other project first; one at a time."))
        look.clicked.connect(lambda: self.wanted.emit(words.id))
        return look

    def _invitation(self, words: CardWords, *, practice: bool) -> str:
        if practice:
            return self.tr("Start and join")
        return self.tr("Look and join") if words.joinable else self.tr("Look")
