"""A worker's life from the start message to the end: it hears the engine, joins and trains, and departs.

Nothing heavy is imported here, so that a stop is obeyed from the first moment. It must not decide whether to join (the
engine did) nor whether to start again (the engine will).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NoReturn

from skep.core import invitation, manifest
from skep.core.messages import (
    FinishTraining,
    SetShare,
    StartTraining,
    StopTraining,
    ToWorker,
    WorkerFailed,
    WorkerMemory,
    WorkerPaused,
)
from skep.core.model import Problem
from skep.worker import processes
from skep.worker.link import Link
from skep.worker.loading import without_collecting
from skep.worker.orders import Orders
from skep.worker.pace import Pace
from skep.worker.priority import Standing
from skep.worker.rounds import Rounds

GRACE_SECONDS: Final = 0.6
"""How long the training thread has to notice a stop before the listening thread departs in its place."""
GOODBYE_SECONDS: Final = 0.5
LAST_RESORT_SECONDS: Final = 0.8
"""A departure that takes longer is cut short: something it needs, such as the DHT's process, hangs."""

Farewell = Callable[[float], None]
"""Tells the swarm that we go, within so many seconds."""


class Volunteer:
    """One peer in one swarm."""

    def __init__(self, start: StartTraining, link: Link) -> None:
        self._start, self._link = start, link
        self._stop, self._finish = threading.Event(), threading.Event()
        self._departing = threading.Lock()
        self._rounds = Rounds(session=secrets.token_hex(4), report=link.send)
        self._pace = Pace(start.share, obeyed=lambda *told: link.send(WorkerPaused(*told)))
        self._orders = Orders(start.present, start.memory, obeyed=lambda *told: link.send(WorkerMemory(*told)))
        self._standing = Standing(present=start.present)
        self._farewell: Farewell | None = None
        self._trains = False

    def listen(self) -> None:
        """Obey the engine from now on."""
        self._link.listen(self._hear, self.stop)

    def run(self) -> None:
        """Join and train until told to stop or finish. Raises SkepError; the caller departs afterwards."""
        self._leave_when_uninvited()
        # torch and hivemind take seconds to import; by now we listen, and the first stage is on screen
        with without_collecting():
            from skep.worker.joining import Joining  # noqa: PLC0415

        joining = Joining(
            self._start,
            self._link,
            self._rounds,
            self._pace,
            orders=self._orders,
            standing=self._standing,
            introduce=self._introduce,
        )
        loop = joining.run()
        self._trains = True
        loop.run(self._stop, self._finish)

    def _leave_when_uninvited(self) -> None:
        """Leave when the invitation expires: from then on no peer answers. Raises SkepError for a damaged one."""
        if not self._start.invitation:
            return
        title = manifest.parse(self._start.manifest.encode()).title
        left = invitation.end_of(self._start.invitation) - datetime.now(UTC)
        over = partial(self.fail, invitation.over(title).problem, retry=False)
        timer = threading.Timer(max(0.0, left / timedelta(seconds=1)), over)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """End soon, from any thread: the training thread departs, or the calling one does in its place."""
        self._stop.set()
        self._standing.leave()
        if self._trains:
            time.sleep(GRACE_SECONDS)
        self.depart()

    def fail(self, problem: Problem, *, retry: bool) -> NoReturn:
        """Tell the engine why, and depart."""
        self._link.send(WorkerFailed(problem, retry=retry))
        self.depart(1, "the training process stopped")

    def depart(self, code: int = 0, reason: str = "left before the round") -> NoReturn:
        """Account for what was not averaged, tell the swarm, end every child, exit."""
        with self._departing:  # never released: the first to come ends the process
            try:
                cut_short = threading.Timer(LAST_RESORT_SECONDS, self._end, [code])
                cut_short.daemon = True
                cut_short.start()
                self._standing.leave()
                self._rounds.end(reason)
                if self._farewell:
                    self._farewell(GOODBYE_SECONDS)
            except Exception:  # noqa: BLE001 - whatever fails here, the process ends
                complain()
            finally:
                self._end(code)

    def _end(self, code: int) -> NoReturn:
        try:
            processes.end_family()
            shutil.rmtree(self._start.run_folder, ignore_errors=True)
        finally:
            os._exit(code)

    def _introduce(self, farewell: Farewell) -> None:
        """The swarm is going to know us."""
        self._farewell = farewell

    def _hear(self, message: ToWorker) -> None:
        if isinstance(message, SetShare):
            if self._orders.give(message.memory, present=message.present):
                self._pace.nudge()
            self._pace.set_share(message.share)
            self._standing.use(present=message.present)
        elif isinstance(message, FinishTraining) and self._trains:
            self._finish.set()
        elif isinstance(message, FinishTraining | StopTraining):
            self.stop()


def complain() -> None:
    """The exception in hand, into the worker's log. The front end reads that too, and may be what broke."""
    with contextlib.suppress(OSError):
        traceback.print_exc()
