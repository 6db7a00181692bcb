"""Follows what may change outside skep while somebody looks at the settings: whether it starts at login.

What differs twice in a row is taken over; once may be a change of our own that is just being written. It must not know
where such a setting is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from skep.core.settings.setting import Value
from skep_gui.app.background import Errands

EVERY = 1000
"""Milliseconds between two looks."""


class OutsideSettings(QObject):
    changed = Signal(object)
    """Settings by key, as they are outside."""

    def __init__(
        self,
        errands: Errands,
        look: Callable[[], Mapping[str, Value]],
        known: Callable[[], Mapping[str, Value]],
        watched: Callable[[], bool],
        parent: QObject,
    ) -> None:
        """`look` is called by an errand, `known` tells the settings as they are shown, `watched` whether anybody looks."""
        super().__init__(parent)
        self._errands, self._look, self._known, self._watched = errands, look, known, watched
        self._seen: Mapping[str, Value] = {}
        self._looking = False
        self.timer = QTimer(self, interval=EVERY)
        self.timer.timeout.connect(self.look)
        self.timer.start()

    def look(self) -> None:
        if self._watched() and not self._looking:
            self._looking = True
            self._errands.run(self._look, self._found, lambda _: self._found({}))

    def _found(self, outside: Mapping[str, Value]) -> None:
        self._looking = False
        known = self._known()
        differing = {key: value for key, value in outside.items() if known.get(key, value) != value}
        if differing and differing == self._seen:
            self.changed.emit(differing)
            differing = {}
        self._seen = differing
