"""Follows settings that are kept outside skep while the settings page is shown: whether skep starts at login.

A value is taken over when it differs twice in a row; a single difference may be our own change that is still being
written. Where such a setting is kept is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from skep.core.settings.setting import Value
from skep_gui.app.background import Background

EVERY = 1000
"""Interval between two readings, in milliseconds."""


class OutsideSettings(QObject):
    changed = Signal(object)
    """The current values by key."""

    def __init__(
        self,
        background: Background,
        look: Callable[[], Mapping[str, Value]],
        shown: Callable[[], Mapping[str, Value] | None],
        parent: QObject,
    ) -> None:
        """`look` runs in the background; `shown` returns the settings as displayed, None while the page is not
        shown.
        """
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
