"""Checks that no test leaves a process or a run folder behind; every suite uses it.

Every process that a test run starts inherits a marker in its environment, and the run's own temporary folder. They
distinguish leftovers from other programs' processes, also if several runs share the computer.
"""

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from multiprocessing import util
from pathlib import Path

import psutil
import pytest

MARKER = "SKEP_TEST_RUN"
GRACE_SECONDS = 2.0
"""Seconds within which a terminated process must have ended."""
LAST = -200
"""Priority below that of multiprocessing's own temporary folder, which is -100."""


def pytest_configure():
    system_folder = tempfile.gettempdir()
    # pytest keeps the folders of failed tests in the usual place
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", system_folder)
    own = tempfile.mkdtemp(prefix="st-", dir=system_folder)  # short: unix socket paths end at 108 characters
    Path(own).chmod(0o711)  # a test that drops root's rights still has access to its own files
    os.environ[MARKER] = secrets.token_hex(8)
    os.environ["TMPDIR"] = tempfile.tempdir = own
    os.environ.pop("XDG_RUNTIME_DIR", None)
    # multiprocessing removes files of its own there when it ends, and a fork that ends must not remove the folder
    util.Finalize(None, shutil.rmtree, args=[own], kwargs={"ignore_errors": True}, exitpriority=LAST)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Fail the test that leaves a process or a run folder; end and remove what it left."""
    processes, files = set(psutil.pids()), _files()
    yield
    left = _left(processes, files)
    if left:
        names = ", ".join(map(_name, (*left[0], *left[1])))
        _end(*left)
        pytest.fail(f"left behind: {names}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind_by_the_run():
    """The same for what remains after a fixture of wider scope."""
    yield from nothing_left_behind.__wrapped__()


def _left(processes, files):
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        new = set(psutil.pids()) - processes
        left = _ours(new, elders=processes), _files() - files - _used_elsewhere(new, elders=processes)
        if not any(left) or time.monotonic() > deadline:
            return left if any(left) else None
        time.sleep(0.02)


def _ours(pids, elders):
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            ours = _is_marked(process) or _is_descendant(process)
            if _lives(process) and ours and not _serves_a_wider_fixture(process, elders):
                found.append(process)
    return found


def _used_elsewhere(pids, elders):
    """Run folders of the processes that serve a wider fixture."""
    found = set()
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if _serves_a_wider_fixture(process, elders):
                found.add(Path(process.environ().get("TMPDIR", "")))
    return found


def _serves_a_wider_fixture(process, elders):
    """Started during the test by a process of ours that is older than the test, e.g. a restart by a practice swarm."""
    parents = [parent.pid for parent in process.parents()]
    below_us = parents[: parents.index(os.getpid())] if os.getpid() in parents else []
    return any(pid in elders for pid in below_us)


def _lives(process):
    # multiprocessing keeps one resource tracker until the interpreter ends
    return process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(process.cmdline())


def _is_marked(process):
    marker = os.environ[MARKER]
    with contextlib.suppress(psutil.AccessDenied):
        return process.environ().get(MARKER) == marker or any(marker in word for word in process.cmdline())
    return False


def _is_descendant(process):
    return any(parent.pid == os.getpid() for parent in process.parents())


def _files():
    """Run folders in this run's temporary folder; peers keep their sockets in them."""
    return set(Path(tempfile.gettempdir()).glob("skep-*"))


def _end(processes, files):
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=GRACE_SECONDS)
    for path in files:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _name(thing):
    if isinstance(thing, Path):
        return str(thing)
    with contextlib.suppress(psutil.Error):
        return f"process {thing.pid} ({' '.join(thing.cmdline())[:200]})"
    return f"process {thing.pid}"
