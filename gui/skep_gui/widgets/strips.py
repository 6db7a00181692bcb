"""The strips at the bottom of the window, hidden at first: a problem with one action, and an update of skep."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QProgressBar

from skep.core.plain_text import plain
from skep.core.text import Problem
from skep_gui.widgets.parts import button, column, label, row, toned
from skep_gui.words.notices import Problems, UpdateView

FULL = 1000


class Strip(QFrame):
    """A title, a line below, one action and a close button. `texts` holds the title and the hint."""

    def __init__(self, name: str, *, act: str = "", spacing: int = 2) -> None:
        """`name` and `act` are the object names of the strip and its first button for the theme; `spacing` is in
        `texts`.
        """
        super().__init__()
        self.setObjectName(name)
        self.title, self.hint = label("", "heading", select=True), label("", "soft", select=True)
        self.act_button, self.close_button = button("", act), button("")
        self.texts = column(self.title, self.hint, spacing=spacing)
        across = row(self.texts, self.act_button, self.close_button)
        across.setStretch(0, 1)
        across.setContentsMargins(24, 12, 16, 12)
        self.setLayout(across)
        self.hide()

    def say(self, title: str, hint: str, action: str) -> None:
        self.title.setText(title)
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        self.act_button.setText(action)


class ProblemStrip(Strip):
    """What happened, what can be done, and one action."""

    acted = Signal(object)
    """The Problem whose button was pressed."""
    dismissed = Signal()

    def __init__(self, words: Problems) -> None:
        super().__init__("strip")
        self._words = words
        self._shown: Problem | None = None
        self._dismissed: Problem | None = None
        toned(self.title, "problem")
        self.act_button.clicked.connect(lambda: self.acted.emit(self._shown))
        self.close_button.setText(self.tr("Close"))
        self.close_button.setAccessibleName(self.tr("Close this message"))
        self.close_button.clicked.connect(self._dismiss)

    def show_problem(self, problem: Problem | None) -> None:
        """None hides it; a problem that was closed stays hidden until another comes."""
        if problem != self._dismissed:
            self._dismissed = None
        if problem is not None:
            title, hint = self._words.tongue.core.problem(problem)
            self.say(plain(title), plain(hint), self._words.action(problem))
        self._shown = problem
        self.setVisible(problem is not None and problem != self._dismissed)

    def _dismiss(self) -> None:
        self._dismissed = self._shown
        self.hide()
        self.dismissed.emit()


class UpdateStrip(Strip):
    """Shown above the strip of problems, while there is an update."""

    acted = Signal()
    closed = Signal()
    """Later, Close or Cancel, depending on the button's current text."""

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
            self.say(view.title, view.hint, view.action)
            self.act_button.setVisible(bool(view.action))
            self.close_button.setText(view.close)
            self.bar.setVisible(view.part is not None)
            self.bar.setValue(round(FULL * (view.part or 0.0)))
            self.bar.setAccessibleName(view.title)
        self.setVisible(view is not None)
