"""The processes of a script's swarm: the DHT's with its p2pd, and the averagers'. They end with the script.

Other processes that the script forks, such as those of a DataLoader, are left alone.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn

import psutil
import torch
from hivemind import DHT
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.progress_tracker import ProgressTracker
from hivemind.utils import MPFuture

from skep.core.traffic import Caps
from skep.worker.connection import futures
from skep.worker.connection.network import ByteCounters, watch_streams
from skep.worker.connection.rates import Rates
from skep.worker.process.processes import PR_SET_PDEATHSIG, raise_file_limit

LOG_LEVEL: Final = "HIVEMIND_LOGLEVEL"
"""hivemind's own variable. Its default shows what a user of skep cannot do anything about."""
END_SECONDS: Final = 1.0
FILE_DESCRIPTOR: Final = "file_descriptor"
ENDED_BY_SIGTERM: Final = 128 + signal.SIGTERM


class _Forks:
    ours: ClassVar[bool] = False
    """Whether the next fork is a process of the swarm."""
    folder: ClassVar[Path | None] = None
    """The folder of its sockets, which the last process removes."""


@functools.cache
def prepare(leave: Callable[[], object]) -> None:
    """What a process needs once, before its first swarm: guards, limits of waits, and how its swarm's forks begin.

    `leave` is called when the script ends, before the interpreter waits for threads; so it is at the end of each fork.
    """
    raise_file_limit()
    if FILE_DESCRIPTOR in torch.multiprocessing.get_all_sharing_strategies():  # macOS has none
        torch.multiprocessing.set_sharing_strategy(FILE_DESCRIPTOR)  # no torch_shm_manager, which would remain
    if LOG_LEVEL not in os.environ:
        logging.getLogger("hivemind").setLevel(logging.WARNING)
    watch_streams(ByteCounters(), Rates(Caps(0.0, 0.0)))
    futures.install()
    os.register_at_fork(after_in_child=_begin)
    threading._register_atexit(leave)  # type: ignore[attr-defined]  # noqa: SLF001 - atexit's come after the threads
    atexit.register(gc.freeze)  # the interpreter's last collection takes longer than all the rest of its end


def _begin() -> None:
    """In a fork: in a swarm's, its own session, which Ctrl-C does not reach, and its end when the script ends."""
    if not _Forks.ours:
        return
    _Forks.ours = False
    signal.signal(signal.SIGTERM, _end_with_children)
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _end_with_children(*_: object) -> NoReturn:
    for each in psutil.Process().children(recursive=True):  # p2pd, which would go on
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    if _Forks.folder is not None:
        shutil.rmtree(_Forks.folder, ignore_errors=True)
    os._exit(ENDED_BY_SIGTERM)


@contextmanager
def forking(folder: Path) -> Iterator[None]:
    """A context in which every fork is a process of the swarm, with its sockets in `folder`.

    hivemind's change of what Ctrl-C does is undone.
    """
    interrupt, _Forks.ours, _Forks.folder = signal.getsignal(signal.SIGINT), True, folder
    try:
        yield
    finally:
        _Forks.ours = False
        signal.signal(signal.SIGINT, interrupt)


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """A context in which SIGTERM raises SystemExit, so that the swarm is left, unless the script handles it itself."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(*_: object) -> NoReturn:
    raise SystemExit(ENDED_BY_SIGTERM)


def end_trackers() -> None:
    """Tell the threads that publish this peer's progress to end; otherwise the interpreter would wait for their waits."""
    for tracker in threading.enumerate():
        if isinstance(tracker, ProgressTracker):
            for event in (tracker.shutdown_triggered, tracker.should_report_progress, tracker.global_state_updated):
                event.set()


def end() -> None:
    """Kill the processes of this script's swarm with their children, and end all waits for them, in other threads too."""
    end_trackers()
    roots = [each for each in multiprocessing.active_children() if isinstance(each, DHT | DecentralizedAverager)]
    family: list[psutil.Process] = []
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(root.pid)
            family += [*process.children(recursive=True), process]
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    deadline = time.monotonic() + END_SECONDS
    for root in roots:
        root.join(max(0.0, deadline - time.monotonic()))
    while any(map(_runs, family)) and time.monotonic() < deadline:
        time.sleep(0.005)
    _give_up_answers()


def _runs(process: psutil.Process) -> bool:
    """Not after its end, though what has become its parent may not have asked for that."""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _give_up_answers() -> None:
    """End the waits for processes that have ended, which may have held a lock of all futures when they were killed."""
    waited_for = list((MPFuture._active_futures or {}).values())  # noqa: SLF001 - hivemind has no other way
    MPFuture.reset_backend()  # new locks
    for reference in waited_for:
        future: Any = reference()
        if future is not None:
            with contextlib.suppress(Exception):  # it may have ended meanwhile
                future.cancel()
