"""Follows what may change outside skep while somebody looks at the settings: whether it starts at login.

What differs twice in a row is taken over; once may be a change of our own that is just being written. It must not know
where such a setting is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from skep.core.settings.setting import Value
from skep_gui.app.background import Background

EVERY = 1000
"""Milliseconds between two looks."""


class OutsideSettings(QObject):
    changed = Signal(object)
    """Settings by key, as they are outside."""

    def __init__(
        self,
        background: Background,
        look: Callable[[], Mapping[str, Value]],
        shown: Callable[[], Mapping[str, Value] | None],
        parent: QObject,
    ) -> None:
        """`look` is called in the background, `shown` tells the settings as somebody sees them, None while nobody looks."""
        super().__init__(parent)
        self._background, self._look, self._shown = background, look, shown
        self._seen: Mapping[str, Value] = {}
        self._looking = False
        self.timer = QTimer(self, interval=EVERY)
        self.timer.timeout.connect(self.look)
        self.timer.start()

    def look(self) -> None:
        if self._shown() is not None and not self._looking:
            self._looking = True
            self._background.run(self._look, self._found, lambda _: self._found({}))

    def _found(self, outside: Mapping[str, Value]) -> None:
        self._looking = False
        known = self._shown() or outside
        differing = {key: value for key, value in outside.items() if known.get(key, value) != value}
        if differing and differing == self._seen:
            self.changed.emit(differing)
            differing = {}
        self._seen = differing
