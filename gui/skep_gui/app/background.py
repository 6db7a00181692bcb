"""Work outside Qt's main thread, with results delivered in it; the engine's messages as Qt signals, and commands to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from skep.core.errors import SkepError
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import Problem, Remedy, Text

T = TypeVar("T")
OUR_OWN = Problem(Text("app.skep_met_error_own_goes"), Text("app.log_has_details"), Remedy.REPORT.value)

log = logging.getLogger("skep.gui")


def _nothing(_answer: object) -> None:
    """The callback for work whose result is not needed."""


class Background(QObject):
    """Threads in separate lanes, so that a keyring or a disk that hangs delays neither commands nor quitting."""

    _answered = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._commands = ThreadPoolExecutor(1, "commands")
        self._quick = ThreadPoolExecutor(1, "quick")
        self._slow = ThreadPoolExecutor(2, "slow")
        self._last = ThreadPoolExecutor(1, "last")
        self.lanes = (self._commands, self._quick, self._slow, self._last)
        self._answered.connect(_hear, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        work: Callable[[], T],
        done: Callable[[T], None] = _nothing,
        failed: Callable[[Problem], None] = _nothing,
        *,
        slow: bool = False,
        last: bool = False,
    ) -> None:
        """Run `work` in a thread; `done` or `failed` is called in the main thread.

        `slow` is for work that may use the network or the keyring or start a process; `last` waits for no other work.
        """
        lane = self._last if last else self._slow if slow else self._quick
        lane.submit(self._do, work, done, failed)

    def command(self, work: Callable[[], object]) -> None:
        """Run what the user wants of the engine, in order; it waits for nothing else."""
        self._commands.submit(self._do, work, _nothing, _nothing)

    def close(self) -> None:
        """Drop work that has not started; work that runs is not waited for."""
        for lane in self.lanes:
            lane.shutdown(wait=False, cancel_futures=True)

    def _do(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[Problem], None]) -> None:
        try:
            answer = work()
        except SkepError as error:
            self._answered.emit(partial(failed, error.problem))
        except Exception:
            log.exception("work in the background failed")
            self._answered.emit(partial(failed, OUR_OWN))
        else:
            self._answered.emit(partial(done, answer))


class Commands:
    """What the user wants of the engine. While the controller opens, it is kept until then."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._send: Callable[[m.Command], object] | None = None
        self._early: list[m.Command] = []
        self._closed = False

    def open(self, send: Callable[[m.Command], object]) -> None:
        """Commands go to `send`, which may block and is called in a thread; first those that were kept."""
        self._send = send
        early, self._early = self._early, []
        for command in early:
            self.post(command)

    def close(self) -> None:
        """Drop all later commands."""
        self._closed = True

    def insist(self, snapshot: Snapshot) -> None:
        """A further Quit, which does not wait for the model that is being saved, if it is."""
        if (send := self._send) is not None and snapshot.saving:
            self._background.command(lambda: send(m.Quit()))

    def post(self, command: m.Command) -> None:
        if self._closed:
            return
        if (send := self._send) is None:
            self._early.append(command)
        else:
            # the engine's queue may be full, and Qt's thread must not block
            self._background.command(lambda: send(command))

    def pause(self, until: float | None) -> None:
        self.post(m.Pause(until))

    def resume(self) -> None:
        self.post(m.Resume())

    def leave(self, at_once: bool = False) -> None:  # noqa: FBT001, FBT002 - a signal's value
        self.post(m.Leave(now=at_once))

    def change_settings(self, values: dict[str, Value]) -> None:
        self.post(m.ChangeSettings(values))


def _hear(answer: Callable[[], None]) -> None:
    answer()


class Bridge(QObject):
    """The only connection between the engine's thread and Qt's. The creator must keep it while the engine runs.

    The engine's observer stores the newest snapshot and wakes the main thread once; many messages cost one update. The
    signals are emitted in the main thread; `observe`, `notify` and `show` may be called in any thread.
    """

    changed = Signal(object)
    """A Snapshot."""
    settled = Signal()
    """A contribution was confirmed or lost, or became pending: the ledger has changed."""
    notified = Signal(object)
    """A Problem to show in one notification."""
    raised = Signal(str)
    """skep was started a second time, with a link or with ""."""
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
        """Implements ports.Observer."""
        news = isinstance(message, m.ContributionPending | m.ContributionConfirmed | m.ContributionLost)
        with self._lock:
            changed = news or snapshot != self._latest  # by value: each tick of the engine makes a new meter
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
