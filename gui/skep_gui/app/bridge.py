"""The only crossing between the engine's thread and Qt's. Whoever makes one must own it for as long as the engine runs.

The engine's observer stores the newest snapshot and wakes the main thread once; many messages cost one update.
"""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, Qt, Signal

from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem


class Bridge(QObject):
    """Its signals are emitted in the main thread; `observe`, `notify` and `show` may be called in any."""

    changed = Signal(object)
    """A Snapshot."""
    settled = Signal()
    """A contribution was confirmed or lost, or became pending: the ledger has news."""
    notified = Signal(object)
    """A Problem to tell once."""
    raised = Signal(str)
    """Somebody started skep a second time, with a link or with ""."""
    _woken = Signal()
    _told = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._news = self._pending = False
        queued = Qt.ConnectionType.QueuedConnection
        self._woken.connect(self._deliver, queued)
        self._told.connect(self.notified, queued)

    def observe(self, message: m.Message, snapshot: Snapshot) -> None:
        """As ports.Observer."""
        news = isinstance(message, m.ContributionPending | m.ContributionConfirmed | m.ContributionLost)
        with self._lock:
            changed = news or snapshot != self._latest  # not by identity: every tick of the engine moves its meter
            self._latest, self._news = snapshot, self._news or news
            wake, self._pending = changed and not self._pending, self._pending or changed
        if wake:
            self._woken.emit()

    def notify(self, problem: Problem) -> None:
        self._told.emit(problem)

    def show(self, link: str) -> None:
        self.raised.emit(link)

    def _deliver(self) -> None:
        with self._lock:
            latest, news = self._latest, self._news
            self._news = self._pending = False
        if latest is not None:
            self.changed.emit(latest)
        if news:
            self.settled.emit()
