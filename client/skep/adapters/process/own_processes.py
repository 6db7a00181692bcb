"""The list of skep's own processes: this one, the practice swarm's, and all their descendants.

A practice swarm is found by the file that it keeps in its folder while it runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import psutil

from skep.adapters.process.process_tree import Mark, mark, session_of
from skep.adapters.storage.files import atomic_write

IsOurs = Callable[[int], bool]
"""Whether the process with this id is skep's."""


def is_our_process(pid: int) -> bool:
    """Whether it is this process or a descendant."""
    if pid == os.getpid():
        return True
    with suppress(psutil.Error):
        return any(parent.pid == os.getpid() for parent in psutil.Process(pid).parents())
    return False


FRESH_SECONDS: Final = 0.2
"""For how long a list of processes is reused."""
ANEW_SECONDS: Final = 300.0
"""How often all processes are examined again: a process id may have been reused unnoticed."""

Roots = Callable[[], Iterable[int]]
"""Ids of the running processes at the root of skep's process trees."""


def this_process() -> Iterable[int]:
    return (os.getpid(),)


class OwnProcesses:
    """Thread-safe. A process is skep's by its parent, or by a session that one of skep's processes leads."""

    def __init__(self, roots: Roots = this_process, clock: Callable[[], float] = time.monotonic) -> None:
        self._roots, self._clock = roots, clock
        self._lock = threading.Lock()
        self._known: set[int] = set()
        self._ours: dict[int, psutil.Process] = {}
        self._leaders: set[int] = set()
        self._looked = self._began = float("-inf")

    def look(self) -> dict[int, psutil.Process]:
        """The running processes of skep, by id."""
        with self._lock:
            if self._clock() - self._looked >= FRESH_SECONDS:
                self._look()
                self._looked = self._clock()
            return dict(self._ours)

    def _look(self) -> None:
        if self._clock() - self._began >= ANEW_SECONDS:
            self._began = self._clock()
            self._known, self._ours, self._leaders = set(), {}, set()
        living = set(psutil.pids())
        new = living - self._known
        self._known = living
        self._ours = {pid: process for pid, process in self._ours.items() if pid in living}
        for root in set(self._roots()) & living - self._ours.keys():
            self._adopt(root)
            new = living - self._ours.keys()  # a root's child may have been seen before the root was known
        self._adopt_all(new)

    def _adopt_all(self, new: set[int]) -> None:
        """Adopt those of `new` that descend from skep's processes, in any order of ids."""
        parents = {pid: parent for pid in new if (parent := _parent(pid)) is not None}
        while found := [
            pid for pid, parent in parents.items() if parent in self._ours or session_of(pid) in self._leaders
        ]:
            for pid in found:
                del parents[pid]
                self._adopt(pid)

    def _adopt(self, pid: int) -> None:
        try:
            self._ours[pid] = psutil.Process(pid)
        except psutil.Error:
            return  # it has ended meanwhile
        if session_of(pid) == pid:
            self._leaders.add(pid)  # also after its end: its id is not reused while the session exists


def _parent(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return None


_NOTE: Final = "process.json"


@contextmanager
def practice_noted(folder: Path) -> Iterator[None]:
    """A context in which this process is noted as that of the practice swarm in `folder`. Raises OSError."""
    file = folder / _NOTE
    if own := mark(os.getpid()):
        atomic_write(file, msgspec.json.encode(own))
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def practice_process(folder: Path) -> int | None:
    """The id of the process that runs the practice swarm in `folder`; None if none does."""
    try:
        found = msgspec.json.decode((folder / _NOTE).read_bytes(), type=Mark).find()
    except (OSError, ValueError):
        return None
    return found.pid if found else None
