"""Finding and killing a worker's process tree, also after the worker or the whole of skep was killed.

Processes are identified by id *and* start time: an id alone may have been reused. A worker is asked to end by `worker`
first, any other child by `end_child`.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
import psutil

from skep.adapters.storage.files import atomic_write
from skep.adapters.storage.paths import RUN_PREFIX

SAME_START_SECONDS: Final = 2.0
"""Start times this close are the same process: they are derived from the wall clock, which may be set in between."""
GROUPS: Final = Path("/sys/fs/cgroup")
KILL_SECONDS: Final = 3.0
"""How long the system may take to end killed processes before waiting for them stops."""

ASK_SECONDS: Final = 0.02
"""Interval between two looks at a child that was asked to end."""

log = logging.getLogger(__name__)


class Mark(msgspec.Struct, frozen=True):
    """One process. `started` is seconds since the epoch."""

    pid: int
    started: float

    def find(self) -> psutil.Process | None:
        """The process, while it is running (a zombie is not)."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_SECONDS
            return process if same and _lives(process) else None
        except psutil.Error:
            return None


def mark(pid: int) -> Mark | None:
    try:
        return Mark(pid, psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class Tree:
    """A process that leads its own session, and all processes it has started.

    `held` says that the caller is the root's parent and has not waited for it, so that its id cannot be reused.
    Otherwise the session counts as ours only while a process seen in it before still runs there: a session's id is not
    reused before its last process has ended.

    `folder` is the folder for temporary files that only the tree's processes use: it identifies those that moved to
    other sessions and lost their parents before they were seen.
    """

    def __init__(self, root: Mark, seen: Iterable[Mark] = (), *, held: bool, folder: Path | None = None) -> None:
        self.root = root
        self.group: Path | None = None
        """The control group that holds the tree alone (see `own_group`): no process of it can leave that."""
        self.seen = frozenset(seen) | {root}
        self._held, self._folder = held, folder

    def look(self) -> bool:
        """Record the present processes, so that those that move to other sessions are found later.

        Returns whether they have changed.
        """
        before = self.seen
        self.seen = frozenset(found for process in self.living() if (found := mark(process.pid))) | {self.root}
        return self.seen != before

    def living(self) -> list[psutil.Process]:
        """All running processes of the tree."""
        everyone = {process.pid: process for process in psutil.process_iter()}
        ours = {each.pid for each in self.seen if each.find()}
        if self._held or any(session_of(pid) == self.root.pid for pid in ours):
            ours |= {pid for pid in everyone if session_of(pid) == self.root.pid}
        ours = _with_descendants(ours, everyone)
        return [everyone[pid] for pid in ours & everyone.keys() if _lives(everyone[pid])]

    def kill(self, within: float = KILL_SECONDS) -> bool:
        """Kill the whole tree, including processes started meanwhile. Returns whether nothing is left."""
        deadline = time.monotonic() + within
        if self.group is not None:
            _kill_group(self.group)
        while left := {*self.living(), *self._strays()}:
            for process in left:
                _kill(process)
            if time.monotonic() > deadline:
                log.error("could not end the processes %s", [process.pid for process in left])
                return False
            time.sleep(0.01)
        return True

    def _strays(self) -> list[psutil.Process]:
        """Processes that use our folder, in any session; too slow to be called often."""
        if not self._folder:
            return []
        since = self.root.started - SAME_START_SECONDS
        return [each for each in psutil.process_iter() if _lives_in(str(self._folder), since, each) and _lives(each)]


def group_name(pid: int) -> str:
    """The name of the control group that is made for a process: of a scope of systemd."""
    return f"app-skep-worker-{pid}.scope"


def own_group(pid: int, groups: Path = GROUPS) -> Path | None:
    """The folder of the control group that was made for the process, if it is in that."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    name = next((line[3:] for line in lines if line.startswith("0::")), "")
    return groups / name.lstrip("/") if Path(name).name == group_name(pid) else None


def _kill_group(group: Path) -> None:
    """Kill all that is in it, at once (Linux 5.14): also what has fled from the tree."""
    try:
        (group / "cgroup.kill").write_text("1")
    except OSError as error:
        if group.exists():  # it is removed with its last process
            log.warning("%s", error)


def _lives_in(folder: str, since: float, process: psutil.Process) -> bool:
    """Whether a process started after `since` uses `folder` for temporary files, if its environment is readable."""
    try:
        return bool(process.create_time() >= since and process.environ().get("TMPDIR") == folder)
    except (psutil.Error, OSError):
        return False


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid) if hasattr(os, "getsid") else None
    except OSError:
        return None


def _with_descendants(ours: set[int], everyone: dict[int, psutil.Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(_parent(process), []).append(process.pid)
    found, new = set(ours), list(ours)
    while new:
        born = [child for child in children.get(new.pop(), []) if child not in found]
        found.update(born)
        new.extend(born)
    return found


def _parent(process: psutil.Process) -> int:
    try:
        return int(process.ppid())
    except psutil.Error:
        return 0


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error as error:
        log.warning("%s", error)


def end_child(
    child: subprocess.Popen[bytes], ask: Callable[[], object], within: float, folder: Path | None = None
) -> None:
    """Call `ask`, wait for at most `within` seconds, kill what is left of the child's tree, and close its pipes.

    The child leads its own session and has not been waited for, not even by `poll`. `folder` is as in `Tree`. Another
    thread may read the child's output meanwhile: its read ends with the tree, which holds the other end of the pipe.
    """
    # not waited for before all is over, so that its number stays its own
    tree = Tree(mark(child.pid) or Mark(child.pid, time.time()), held=True, folder=folder)
    tree.look()
    ask()
    deadline = time.monotonic() + within
    while tree.root.find() and time.monotonic() < deadline:
        time.sleep(ASK_SECONDS)
    with child:  # closes its pipes, and waits
        tree.kill()


# --- the registry: what to end after skep was killed


class _Registry(msgspec.Struct):
    root: Mark
    seen: list[Mark]
    run_folder: str


def write_registry(file: Path, tree: Tree, run_folder: Path) -> None:
    """Write down the tree and its run folder. A failure is only logged: it prevents a later clean-up, not training."""
    body = _Registry(tree.root, sorted(tree.seen, key=lambda each: each.pid), str(run_folder))
    try:
        atomic_write(file, msgspec.json.encode(body))
    except OSError as error:
        log.warning("the worker could not be noted: %s", error)


def forget_registry(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("the worker's note could not be removed: %s", error)


def sweep_leftovers(file: Path) -> None:
    """End what is left of the worker that a killed skep noted in `file`, and remove its run folder.

    Only for the holder of the home's lock: the worker of a running skep is noted in the same file.
    """
    try:
        body = msgspec.json.decode(file.read_bytes(), type=_Registry)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        log.warning("the note about an earlier worker cannot be read: %s", error)
    else:
        run_folder = Path(body.run_folder)
        Tree(body.root, body.seen, held=False, folder=run_folder if _is_run_folder(run_folder) else None).kill()
        remove_run_folder(run_folder)
    forget_registry(file)


def remove_run_folder(folder: Path) -> None:
    """Remove a worker's run folder, unless it does not look like one or is a link."""
    if _is_run_folder(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _is_run_folder(folder: Path) -> bool:
    return folder.name.startswith(RUN_PREFIX) and folder.is_absolute()
