"""The worker process, `python -m skep.worker.main`: it hears the engine over stdin and stdout, joins and trains, and departs.

Nothing heavy is imported here, so that a stop is obeyed from the first moment. It must not decide whether to join (the
engine did) nor whether to start again (the engine will).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NoReturn

from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.project import invitation
from skep.core.session import messages
from skep.core.session.messages import WorkerOptions
from skep.core.session.phases import Stage
from skep.core.session.transitions import LEFT
from skep.core.session.wire import WireError
from skep.core.text import Problem, Text
from skep.recipes.registry import parse_manifest
from skep.worker.process import processes
from skep.worker.process.link import Link
from skep.worker.process.memory import without_collecting
from skep.worker.swarm.rounds import Rounds
from skep.worker.training.pace import Pace, RequestedLimits

GRACE_SECONDS: Final = 0.6
"""How long the training thread has to notice a stop before the listening thread departs in its place."""
GOODBYE_SECONDS: Final = 0.5
LAST_RESORT_SECONDS: Final = 0.8
"""A departure that takes longer is cut short: something it needs, such as the DHT's process, hangs."""
UNEXPECTED: Final = Problem(Text("worker.training_process_met_error_skep"), Text("worker.log_has_details_skep_starts"))

Farewell = Callable[[float], None]
"""Tells the swarm that we go, within so many seconds."""


def main() -> None:
    """Run one worker. Ends the process itself in every case, and every process it has started."""
    link = Link.over_stdio()
    link.close_in_children()
    processes.tie_to_this_process()
    processes.fork_into_sessions()
    processes.raise_file_limit()
    processes.use_fork()
    volunteer = Volunteer(first_word(link), link)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=volunteer.stop, daemon=True).start())
    volunteer.listen()
    link.send(messages.WorkerStage(Stage.HARDWARE, 0.0))
    try:
        volunteer.run()
    except SkepError as error:
        volunteer.fail(error.problem, retry=isinstance(error, SwarmError | DataError | DeviceError))
    except BaseException:  # noqa: BLE001 - the last resort: words for the user, the traceback for the log
        complain()
        volunteer.fail(UNEXPECTED, retry=True)
    volunteer.depart()


def first_word(link: Link) -> WorkerOptions:
    """The start message. Without one the process ends: with 0 when the engine is gone, with 2 when it speaks nonsense."""
    try:
        options = link.first()
    except (OSError, WireError):
        complain()
        os._exit(2)
    if not isinstance(options, WorkerOptions):
        os._exit(0 if options is None else 2)
    return options


class Volunteer:
    """One peer in one swarm."""

    def __init__(self, options: WorkerOptions, link: Link) -> None:
        self._options, self._link = options, link
        self._stop, self._finish = threading.Event(), threading.Event()
        self._departing = threading.Lock()
        self._rounds = Rounds(session=secrets.token_hex(4), report=link.send)
        self._pace = Pace(options.share, obeyed=lambda *told: link.send(messages.WorkerPaused(*told)))
        self._orders = RequestedLimits(
            options.present, options.memory, obeyed=lambda *told: link.send(messages.WorkerMemory(*told))
        )
        self._standing = processes.SessionPriority(present=options.present)
        self._farewell: Farewell | None = None
        self._trains = False

    def listen(self) -> None:
        """Obey the engine from now on."""
        self._link.listen(self._hear, self.stop)

    def run(self) -> None:
        """Join and train until told to stop or finish. Raises SkepError; the caller departs afterwards."""
        manifest = parse_manifest(self._options.manifest.encode())
        self._leave_when_uninvited(manifest.title)
        # torch and hivemind take seconds to import; by now we listen, and the first stage is on screen
        with without_collecting():
            from skep.worker.joining import Joining  # noqa: PLC0415

        controls = self._pace, self._orders, self._standing
        loop = Joining(self._options, manifest, self._link, self._rounds, *controls, self._introduce).run()
        self._trains = True
        loop.run(self._stop, self._finish)

    def _leave_when_uninvited(self, title: str) -> None:
        """Leave when the invitation expires: from then on no peer answers. Raises SkepError for a damaged one."""
        if not self._options.invitation:
            return
        left = invitation.end_of(self._options.invitation) - datetime.now(UTC)
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
        self._link.send(messages.WorkerFailed(problem, retry=retry))
        self.depart(1, Text("worker.training_process_stopped"))

    def depart(self, code: int = 0, reason: Text = LEFT) -> NoReturn:
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
            processes.kill_descendants()
            shutil.rmtree(self._options.run_folder, ignore_errors=True)
        finally:
            os._exit(code)

    def _introduce(self, farewell: Farewell) -> None:
        """The swarm is going to know us."""
        self._farewell = farewell

    def _hear(self, message: messages.ToWorker) -> None:
        match message:
            case messages.SetShare():
                if self._orders.give(message.memory, present=message.present):
                    self._pace.nudge()
                self._pace.set_share(message.share)
                self._standing.use(present=message.present)
            case messages.FinishTraining() if self._trains:
                self._finish.set()
            case messages.FinishTraining() | messages.StopTraining():
                self.stop()
            case messages.ShardArrived() | messages.ShardFailed() | WorkerOptions():
                pass  # the training thread hears of shards; options hold from the start to the end


def complain() -> None:
    """The exception in hand, into the worker's log. The front end reads that too, and may be what broke."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


if __name__ == "__main__":
    main()
