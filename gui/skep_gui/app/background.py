"""Errands: whatever may take its time is done in threads, and its answer is heard in Qt's main thread.

In lanes, so that a keyring that hangs holds up neither reading the ledger nor the end.
It must not know what the errands are about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from skep.core.errors import SkepError
from skep.core.text import Problem, Remedy, Text

T = TypeVar("T")
OUR_OWN = Problem(Text("app.skep_met_error_own_goes"), Text("app.log_has_details"), Remedy.REPORT.value)

log = logging.getLogger("skep.gui")


class Errand(Generic[T]):
    """What to do with the answer; `done` and `failed` are called in the main thread."""

    def __init__(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[Problem], None]) -> None:
        self.work, self.done, self.failed = work, done, failed


class Errands(QObject):
    _answered = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._quick = ThreadPoolExecutor(1, "quick")
        self._slow = ThreadPoolExecutor(2, "slow")
        self._last = ThreadPoolExecutor(1, "last")
        self._answered.connect(_hear, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[Problem], None],
        *,
        slow: bool = False,
        last: bool = False,
    ) -> None:
        """`slow` is what may ask the network, the keyring, or start something; `last` waits for no other errand."""
        lane = self._last if last else self._slow if slow else self._quick
        lane.submit(self._do, Errand(work, done, failed))

    def close(self) -> None:
        """What has not begun is dropped; what has is not waited for."""
        for lane in (self._quick, self._slow, self._last):
            lane.shutdown(wait=False, cancel_futures=True)

    def _do(self, errand: Errand[Any]) -> None:
        try:
            answer = errand.work()
        except SkepError as error:
            problem = error.problem
            self._answered.emit(lambda: errand.failed(problem))
        except Exception:
            log.exception("an errand failed")
            self._answered.emit(lambda: errand.failed(OUR_OWN))
        else:
            self._answered.emit(lambda: errand.done(answer))


def _hear(answer: Callable[[], None]) -> None:
    answer()
