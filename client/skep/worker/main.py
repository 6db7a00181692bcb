"""The worker process, `python -m skep.worker.main`: it takes the engine's messages on stdin, joins, trains and exits.

No large library is imported here, so that a stop takes effect immediately. The engine decides whether to join and
whether to restart, not this module.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from skep.core.device import first_chosen
from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.project import invitation
from skep.core.project.manifest import Manifest
from skep.core.sandbox import Level, Sandbox
from skep.core.session import messages
from skep.core.session.losses import LEFT
from skep.core.session.messages import WorkerOptions
from skep.core.session.phases import Stage
from skep.core.session.wire import WireError
from skep.core.text import Problem, Text
from skep.core.traffic import Caps
from skep.recipes.registry import parse_manifest
from skep.worker.connection import revoked
from skep.worker.connection.rates import Rates
from skep.worker.process import processes, stacks
from skep.worker.process.link import Link
from skep.worker.process.memory import GB, collect_before_forks, use_one_arena, without_collecting
from skep.worker.sandbox.cards import has_cards
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.limits import limit_files
from skep.worker.sandbox.rules import Own
from skep.worker.swarm.rounds import Rounds
from skep.worker.training.pace import Pace, RequestedLimits

if TYPE_CHECKING:
    from skep.worker.training.loop import TrainingLoop

GRACE_SECONDS: Final = 0.6
"""How long the training thread has to notice a stop before the listening thread ends the process."""
GOODBYE_SECONDS: Final = 0.5
SAVE_SECONDS: Final = 30.0
"""How long a peer that leaves may write its state at least: until a state that is copied does not change any more."""
COPY_SECONDS: Final = 0.8
"""How long the state may take to be copied while the training thread is in a round or a micro-batch, besides the time for
its size: the device is needed."""
SLOW_MEMORY: Final = 1_000_000_000
"""Bytes per second that any device's memory is copied."""
SLOW_DISK: Final = 20_000_000
"""Bytes per second that any disk writes; so much longer may a peer write a large state."""
LAST_RESORT_SECONDS: Final = 0.8
"""Time limit of `depart`: something it needs, such as the DHT's process, may hang."""
CPU: Final = "cpu"
LEAST_FILE_GB: Final = 1.0
"""The largest file that the worker may write has the memory or the disk that its project names, and at least this."""
UNEXPECTED: Final = Problem(Text("worker.training_process_met_error_skep"), Text("worker.log_has_details_skep_starts"))

Farewell = Callable[[float], None]
"""Tells the swarm that this peer leaves; takes at most the given number of seconds."""


def main() -> None:
    """Run one worker. In every case, end this process and all processes it has started."""
    use_one_arena()
    collect_before_forks()
    link = Link.over_stdio()
    link.close_in_children()
    stacks.write_on_request()
    processes.tie_to_this_process()
    processes.fork_into_sessions()
    processes.raise_file_limit()
    processes.use_fork()
    volunteer = Volunteer(first_word(link), link)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=volunteer.stop, daemon=True).start())
    try:
        volunteer.confine()
        volunteer.listen()
        link.send(messages.WorkerStage(Stage.HARDWARE, 0.0))
        volunteer.run()
    except SkepError as error:
        volunteer.fail(error.problem, retry=isinstance(error, SwarmError | DataError | DeviceError))
    except BaseException:  # noqa: BLE001 - last resort: a message for the user, the traceback for the log
        complain()
        volunteer.fail(UNEXPECTED, retry=True)
    volunteer.depart()


def first_word(link: Link) -> WorkerOptions:
    """The start message. Without one the process exits: with 0 if the engine closed the pipe, 2 if it is invalid."""
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
        self._stop, self._finish, self._at_edge = threading.Event(), threading.Event(), threading.Event()
        self._departing = threading.Lock()
        self._rounds = Rounds(session=secrets.token_hex(4), report=link.send)
        self._pace = Pace(options.share, obeyed=lambda *told: link.send(messages.WorkerPaused(*told)))
        self._requested = RequestedLimits(
            options.present,
            options.memory,
            options.ceilings,
            obeyed=lambda *told: link.send(messages.WorkerMemory(*told)),
        )
        self._priority = processes.SessionPriority(present=options.present)
        self._rates = Rates(Caps(options.upload, options.download))
        self._reason = LEFT
        self._farewell: Farewell | None = None
        self._trains = False
        self._loop: TrainingLoop | None = None
        self._returned = threading.Event()
        """Set when the training thread computes nothing more."""
        self._saving = threading.Lock()

    @cached_property
    def _manifest(self) -> Manifest:
        """Raises ManifestError."""
        return parse_manifest(self._options.manifest.encode())

    def confine(self) -> Sandbox:
        """Enter the sandbox, before any thread is started; what it enforces is written to the worker's log too."""
        options = self._options
        writes = options.snapshots_folder, options.known_peers_folder
        own = Own(options.run_folder, writes, reads=[options.shards_folder], files=[options.identity_path])
        found = confine(own, options.sandbox, cards=first_chosen(options.device) != CPU and has_cards())
        with contextlib.suppress(OSError):
            print(f"sandbox: {found}", file=sys.stderr)  # noqa: T201 - stderr is the worker's log
        return found

    def listen(self) -> None:
        """Start handling the engine's messages; a later list of revoked invitations must not be followed by ours."""
        if self._options.revocations:
            self._take_revocations(self._options.revocations)
        self._link.listen(self._hear, self.stop)

    def run(self) -> None:
        """Join and train until a message says to stop or finish. Raises SkepError; the caller then calls `depart`."""
        manifest = self._manifest
        if self._options.sandbox is not Level.NONE:
            limit_files(round(max(manifest.needs.memory_gb, manifest.needs.disk_gb, LEAST_FILE_GB) * GB))
        self._leave_when_uninvited(manifest.title)
        # torch and hivemind take seconds to import; messages are handled and the first stage is shown already
        with without_collecting():
            from skep.worker.joining import Joining  # noqa: PLC0415

        controls = self._pace, self._requested, self._priority, self._rates
        joining = Joining(self._options, manifest, self._link, self._rounds, *controls, self._introduce, self._alarm)
        loop = joining.run()
        self._loop, self._trains = loop, True
        loop.run(self._stop, self._finish, self._at_edge)
        self._returned.set()
        self._save()

    def _leave_when_uninvited(self, title: str) -> None:
        """Leave when the invitation expires: then no peer answers any more. Raises SkepError for a damaged one."""
        if not self._options.invitation:
            return
        left = invitation.end_of(self._options.invitation) - datetime.now(UTC)
        over = partial(self.fail, invitation.over(title).problem, retry=False)
        timer = threading.Timer(max(0.0, left / timedelta(seconds=1)), over)
        timer.daemon = True
        timer.start()

    def _take_revocations(self, text: str) -> None:
        """Keep the list where the processes that speak to peers read it; leave if it names this computer.

        One of another project, which was fetched when that one was left, is ignored.
        """
        listed = revoked.of_project(text, self._manifest)
        if listed is None:
            return
        try:
            revoked.write(text, Path(self._options.run_folder))
        except OSError as error:
            self.fail(Problem(Text("worker.revocations_not_written", reason=str(error.strerror))), retry=True)
        if listed.voids(invitation.read(self._options.invitation.encode(), lambda *_: True)):
            self.fail(invitation.revoked(self._manifest.title).problem, retry=False)

    def stop(self, reason: Text = LEFT) -> None:
        """Save the state and end, from any thread; the training thread does, or else, if it is in a round, this one.

        What was not averaged is lost for `reason`.
        """
        self._reason = reason
        self._stop.set()
        self._priority.leave()
        if self._trains:
            self._returned.wait(GRACE_SECONDS)
            self._save()
        self.depart()

    def _save(self) -> None:
        """Leave the swarm, then write the state to the disk. A second thread returns when that is done."""
        with self._saving:
            loop, self._loop = self._loop, None
            if loop is None:
                return
            try:
                self._write_state(loop)
            except Exception:  # noqa: BLE001 - whatever fails here, the process ends
                complain()

    def _write_state(self, loop: TrainingLoop) -> None:
        seconds = SAVE_SECONDS + loop.state_bytes() / SLOW_DISK
        self._end_after(seconds + LAST_RESORT_SECONDS, 0)
        self._link.send(messages.WorkerSaving(seconds))
        leaving = threading.Thread(target=self._say_goodbye, args=(self._reason,), daemon=True)
        leaving.start()
        if self._returned.is_set():
            _release(loop)
            loop.sync.save(seconds)
        else:  # what a round or a micro-batch uses may be taken from it once there is a copy
            unsaved = self._end_after(COPY_SECONDS + loop.state_bytes() / SLOW_MEMORY, 0)

            def copied() -> None:
                unsaved.cancel()
                _release(loop)

            loop.sync.save(seconds, copied)
        leaving.join(LAST_RESORT_SECONDS)

    def fail(self, problem: Problem, *, retry: bool) -> NoReturn:
        """Depart, and report the problem to the engine first, unless this process is already to end."""
        if not (self._stop.is_set() or self._departing.locked()):
            self._link.send(messages.WorkerFailed(problem, retry=retry))
        with self._saving:  # what another thread writes is written first
            self.depart(1, Text("worker.training_process_stopped"))

    def _alarm(self, problem: Problem) -> None:
        """Fail because a part is gone or hangs, unless this process ends anyway, perhaps after it has saved its state."""
        if not (self._departing.locked() or self._saving.locked()):
            stacks.write()
            self.fail(problem, retry=True)

    def depart(self, code: int = 0, reason: Text | None = None) -> NoReturn:
        """Report what was not averaged as lost, tell the swarm, end all child processes, exit."""
        with self._departing:  # never released: the first thread here ends the process
            try:
                self._end_after(LAST_RESORT_SECONDS, code)
                self._priority.leave()
                self._say_goodbye(reason or self._reason)
            except Exception:  # noqa: BLE001 - whatever fails here, the process ends
                complain()
            finally:
                self._end(code)

    def _say_goodbye(self, reason: Text) -> None:
        """Report what was not averaged as lost, and tell the swarm."""
        self._rounds.end(reason)
        farewell, self._farewell = self._farewell, None
        if farewell:
            farewell(GOODBYE_SECONDS)

    def _end_after(self, seconds: float, code: int) -> threading.Timer:
        cut_short = threading.Timer(seconds, self._end, [code])
        cut_short.daemon = True
        cut_short.start()
        return cut_short

    def _end(self, code: int) -> NoReturn:
        try:
            processes.kill_descendants()
            shutil.rmtree(self._options.run_folder, ignore_errors=True)
        finally:
            os._exit(code)

    def _introduce(self, farewell: Farewell) -> None:
        """Called before this peer publishes anything; `farewell` removes its record from the DHT."""
        self._farewell = farewell

    def _hear(self, message: messages.ToWorker) -> None:
        match message:
            case messages.SetShare():
                self._requested.ceilings = message.ceilings
                if self._requested.give(message.memory, present=message.present):
                    self._pace.nudge()
                self._pace.set_share(message.share)
                self._priority.use(present=message.present)
            case messages.FinishTraining(at_edge=True):
                self._at_edge.set()
            case messages.FinishTraining() if self._trains:
                self._finish.set()
            case messages.FinishTraining():
                self.stop()
            case messages.StopTraining(reason=reason):
                self.stop(reason)
            case messages.SetTraffic(upload=upload, download=download):
                self._rates.use(Caps(upload, download))
            case messages.RevocationsArrived(text=text):
                self._take_revocations(text)
            case messages.ShardArrived() | messages.ShardFailed() | WorkerOptions():
                pass  # the training thread handles messages about shards; options do not change after the start


def _release(loop: TrainingLoop) -> None:
    """Free the device's memory. What cannot be freed, since a micro-batch uses it, ends with this process."""
    with contextlib.suppress(Exception):
        loop.limits.release()


def complain() -> None:
    """Write the current exception to the worker's log. This may fail: the front end reads it and may have crashed."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


if __name__ == "__main__":
    main()
