"""The engine's side of the worker: starting the child process, exchanging messages over its pipes, ending it.

Nothing of `skep.worker` is imported here. The session decides when a worker starts or stops.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Final

import psutil
from msgspec.structs import replace

from skep.adapters.process.child_log import Lines, LoggedLines
from skep.adapters.process.device_nodes import make_device_nodes
from skep.adapters.process.heard import Heard
from skep.adapters.process.process_tree import (
    KILL_SECONDS,
    Mark,
    Tree,
    forget_registry,
    mark,
    own_group,
    remove_run_folder,
    sweep_leftovers,
    write_registry,
)
from skep.adapters.process.programs import module_command, was_replaced
from skep.adapters.process.start import COMMAND, spawn
from skep.adapters.process.tree_use import use_of
from skep.core.errors import SkepError
from skep.core.policy.growth import Use
from skep.core.session import messages as m
from skep.core.session import wire
from skep.core.session.losses import LEFT
from skep.core.session.transitions import LONGEST_SAVING_SECONDS
from skep.core.text import Problem, Text
from skep.ports import Post

LOOK_SECONDS: Final = 1.0
"""How often the process is checked, since children that hold its pipes open may hide its end."""
NEAR_END_SECONDS: Final = 0.05
"""The same, when it has closed its pipes or should have ended."""
FIRST_REMEMBER_SECONDS: Final = 0.25
LONGEST_REMEMBER_SECONDS: Final = 60.0
"""Longest interval of the search for processes it has started, which is frequent only while there are new ones."""
READ_BYTES: Final = 65536
LAST_READS: Final = 4
"""As many take what both pipes may still hold after LAST_WORDS_SECONDS, when the listener was slow."""
MEASURE_SECONDS: Final = 60.0
"""How often what its processes use is measured: of a large process that takes tenths of a second."""
EXIT_SECONDS: Final = 2.0
"""How long it may take to exit when it has saved its state."""
LAST_WORDS_SECONDS: Final = 1.0
"""How long the remaining output of an ended process is read."""

STUCK_SIGNALS: Final = (*((signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()), signal.SIGTERM)
"""For a worker that is stuck. At the first, where systems have it, the worker writes its stacks to stderr."""

log = logging.getLogger(__name__)

Measure = Callable[[Iterable[psutil.Process]], Use]

UNREADABLE: Final = Problem(
    Text("worker.training_process_sent_something_skep"),
    Text("worker.if_happens_again_please_report"),
)


class WorkerProcess:
    """Implements ports.Worker. One process at a time; each has its own session and run folder."""

    def __init__(
        self,
        post: Post,
        *,
        registry_file: Path,
        make_run_folder: Callable[[], Path],
        stderr_log: logging.Logger,
        command: Sequence[str] = COMMAND,
        pack: Callable[[], Path | None] = lambda: None,
        limit_memory: Callable[[int, int], None] = lambda _pid, _leave: None,
        measure: Measure = use_of,
        measure_seconds: float = MEASURE_SECONDS,
    ) -> None:
        """`registry_file` records the running worker for `sweep_leftovers`; `stderr_log` receives its stderr.

        `pack` is asked at each start for the folder of the compute pack to use; with None, `command` is started.
        `limit_memory` is called with the id of a process that waits for its options, and the bytes to leave free.
        `measure` is called every `measure_seconds` with the processes of the running worker.
        """
        self._post = post
        self._registry_file, self._make_run_folder = registry_file, make_run_folder
        self._stderr_log, self._command = stderr_log, tuple(command)
        self._pack, self._limit_memory = pack, limit_memory
        self._measuring = measure, measure_seconds
        self._life: _Life | None = None

    def start(self, options: m.WorkerOptions) -> None:
        """Start the process in a fresh run folder. Raises SkepError when it cannot be started."""
        if self._life and not self._life.is_over:
            raise SkepError(Text("worker.training_process_running_already"), Text("worker.leave_project_first"))
        if was_replaced():
            raise SkepError(Text("worker.skep_was_replaced"), Text("worker.start_skep_again"))
        sweep_leftovers(self._registry_file)
        make_device_nodes()
        run_folder = self._make_run_folder()
        try:
            pack = self._pack()
            command = self._command if pack is None else module_command("skep.worker.main", pack)
            process = spawn(command, run_folder, options.threads)
        except SkepError:
            remove_run_folder(run_folder)
            raise
        except OSError as error:
            remove_run_folder(run_folder)
            raise SkepError(
                Text("worker.training_process_could_not_started", strerror=str(error.strerror)),
                Text("worker.install_skep_again"),
            ) from None
        parts = process, run_folder, self._registry_file, self._stderr_log, self._post
        self._life = _Life(*parts, measuring=self._measuring)
        self._life.begin()
        self._limit_memory(process.pid, options.leave_ram)
        self._life.note_group()
        self._life.tell(replace(options, run_folder=str(run_folder)))

    def tell(self, message: m.ToWorker) -> None:
        if self._life:
            self._life.tell(message)

    def stop(self, reason: Text = LEFT, within: float = 2.0) -> None:
        if self._life:
            self._life.stop(within, reason)

    def end_stuck(self, within: float = 2.0) -> None:
        if self._life:
            self._life.signal(*STUCK_SIGNALS)
            self._life.stop(within, spares=False)

    def close(self, within: float = 2.0) -> None:
        if self._life:
            self._life.stop(within)
            self._life.wait_gone()


class _Life:
    """One process from start to exit: a thread that writes, one that reads, one that waits for its end."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        run_folder: Path,
        registry_file: Path,
        stderr_log: logging.Logger,
        post: Post,
        *,
        measuring: tuple[Measure, float],
    ) -> None:
        self._process, self._run_folder, self._registry_file = process, run_folder, registry_file
        self._log, self._post = stderr_log, post
        self._measure, self._measure_seconds = measuring
        # some systems report no start time of a child that has exited already
        root = mark(process.pid) or Mark(process.pid, time.time())
        self._tree = Tree(root, held=True, folder=run_folder)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._kill_at = self._read_until = float("inf")
        self._heard, self._is_refused, self._may_save = Heard(), False, True
        self._stirred = threading.Event()
        """Set when the watching thread has to check the process immediately."""
        self._gone = threading.Event()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=job, name=f"worker-{job.__name__.strip('_')}", daemon=True)
            for job in (self._write, self._read, self._watch)
        ]

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def begin(self) -> None:
        write_registry(self._registry_file, self._tree, self._run_folder)
        for thread in self._threads:
            thread.start()

    def note_group(self) -> None:
        self._tree.group = own_group(self._process.pid)

    def tell(self, message: m.ToWorker) -> None:
        self._outgoing.put(wire.encode(message))

    def stop(self, within: float, reason: Text = LEFT, *, spares: bool = True) -> None:
        """End it after `within` seconds at the latest, or if it `spares` what is saved, when that is written."""
        self._may_save &= spares
        self.tell(m.StopTraining(reason))
        self._end_by(time.monotonic() + within)

    def signal(self, *signals: int) -> None:
        """Have the watching thread send the signals: only while it has not seen the end, the process's id is its own."""
        for each in signals:
            self._signals.put(each)
        self._stirred.set()

    def _end_by(self, deadline: float) -> None:
        self._kill_at = min(self._kill_at, deadline)
        self._stirred.set()

    def wait_gone(self) -> None:
        """Wait until nothing of it is left, or the system fails to end it."""
        self._gone.wait(max(0.0, self._kill_at - time.monotonic()) + 2 * KILL_SECONDS)

    # --- the writing thread, so that a worker that does not read blocks no other thread

    def _write(self) -> None:
        assert self._process.stdin is not None
        while line := self._outgoing.get():
            try:
                _write_all(self._process.stdin, line)
            except OSError:
                return  # it has ended, which the watching thread reports

    # --- the reading thread

    def _read(self) -> None:
        try:
            self._listen()
        except Exception:
            log.exception("the worker cannot be listened to, so it is ended")
            self._end_by(0.0)
        self._stirred.set()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        hear = Lines(wire.FROM_WORKER_LIMIT, self._hear, self._refuse)
        note = LoggedLines(self._log)
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, hear)
            selector.register(self._process.stderr, selectors.EVENT_READ, note)
            left = LAST_READS
            while selector.get_map():
                ready = selector.select(LOOK_SECONDS)
                for key, _ in ready:
                    if chunk := os.read(key.fd, READ_BYTES):
                        key.data.feed(chunk)
                    else:
                        selector.unregister(key.fileobj)
                if time.monotonic() > self._read_until:
                    left -= len(ready)
                    if not ready or left <= 0:
                        break  # a process that was not found holds the pipe
        note.end()

    def _hear(self, line: bytes) -> None:
        if self._is_refused:
            return
        try:
            message = self._heard.message(line)
        except wire.WireError as error:
            self._refuse(str(error).encode())
        else:
            if isinstance(message, m.WorkerSaving):
                self._spare(message.seconds)
            self._may_save = self._may_save and not isinstance(message, m.WorkerFailed)
            self._post(message)

    def _spare(self, seconds: float) -> None:
        """Let it live on to write its state, once; a later stop ends it."""
        if self._may_save:
            self._may_save = False
            until = time.monotonic() + min(max(0.0, seconds), LONGEST_SAVING_SECONDS) + EXIT_SECONDS
            self._kill_at = max(self._kill_at, until)

    def _refuse(self, what: bytes) -> None:
        """Handle invalid output, by a bug or an attack: ignore the rest and kill the process."""
        if not self._is_refused:
            self._is_refused = True
            self._log.error("the worker's message is none of ours: %r", what[:200])
            self._post(m.WorkerFailed(UNREADABLE, retry=True))
            self._end_by(0.0)

    # --- the watching thread

    def _watch(self) -> None:
        try:
            self._guard()
        except Exception:
            log.exception("the worker cannot be watched, so it is ended")
            os.kill(self._process.pid, signal.SIGKILL)
        self._clean_up()

    def _guard(self) -> None:
        look_at, wait = 0.0, FIRST_REMEMBER_SECONDS
        measure_at = time.monotonic() + self._measure_seconds
        while self._is_running():
            while not self._signals.empty():
                os.kill(self._process.pid, self._signals.get())
            now = time.monotonic()
            if now >= self._kill_at:
                self._tree.kill()
            elif now >= look_at:
                wait = FIRST_REMEMBER_SECONDS if self._remember() else min(2 * wait, LONGEST_REMEMBER_SECONDS)
                look_at = now + wait
            elif now >= measure_at:
                measure_at = now + self._measure_seconds
                self._post(m.WorkerMeasured(self._measure(self._tree.living())))
            self._await_news(min(look_at, self._kill_at))
        self._tree.kill()

    def _await_news(self, until: float) -> None:
        """Return on an event, at the time `until`, or when the next check is due."""
        _, reading, _ = self._threads
        if reading.is_alive():
            self._stirred.wait(min(LOOK_SECONDS, max(NEAR_END_SECONDS, until - time.monotonic())))
            self._stirred.clear()
        else:
            time.sleep(NEAR_END_SECONDS)

    def _remember(self) -> bool:
        """Record the present processes. Returns whether they have changed."""
        changed = self._tree.look()
        if changed:
            write_registry(self._registry_file, self._tree, self._run_folder)
        return changed

    def _is_running(self) -> bool:
        """False once it exited; the process is not reaped here, so that its id is not reused."""
        pid = self._process.pid
        try:
            if hasattr(os, "waitid"):  # on macOS only from Python 3.13 on
                return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
        except (psutil.Error, ChildProcessError):
            return False

    def _clean_up(self) -> None:
        code = self._process.wait()
        remove_run_folder(self._run_folder)
        forget_registry(self._registry_file)
        self._read_until = time.monotonic() + LAST_WORDS_SECONDS
        self._gone.set()
        self._outgoing.put(None)
        writing, reading, _ = self._threads
        writing.join(LAST_WORDS_SECONDS)
        reading.join()  # its messages are posted before the report of its end
        if not writing.is_alive():
            self._close_pipes()
        self._over.set()
        self._post(m.WorkerExited(code, chance=random.random()))  # noqa: S311 - spreads restarts, protects nothing

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


def _write_all(pipe: IO[bytes], line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(pipe.fileno(), left) :]
