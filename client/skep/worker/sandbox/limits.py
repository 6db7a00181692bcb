"""What the worker gives up at its start: rights, core dumps, tasks and files without limit, its place when memory ends.

Its memory is limited from outside, by the control group to which the engine moves it; here that is only looked at.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from skep.worker.sandbox import calls

_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_VERSION: Final = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""
MOST_CAPABILITIES: Final = 64
TASKS: Final = 4096
"""Processes and threads beyond those that the person runs already: compute threads of a large processor, several times."""
OWN_GROUP: Final = Path("/proc/self/cgroup")
GROUPS: Final = Path("/sys/fs/cgroup")
OUT_OF_MEMORY_SCORE: Final = 800
"""Of 1000: when memory ends, the system ends the worker before the person's programs."""


def no_new_privileges() -> None:
    """No program that this process starts has more rights than it. Raises OSError."""
    calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Root, too, has only the rights of the owner of root's files from now on. Raises OSError."""
    with suppress(OSError):  # only root has any to drop here
        for capability in range(MOST_CAPABILITIES):
            calls.prctl(calls.PR_CAPBSET_DROP, capability)
    calls.prctl(calls.PR_CAP_AMBIENT, calls.PR_CAP_AMBIENT_CLEAR_ALL)
    number = _CAPSET.get(calls.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "the number of capset is not known")
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_VERSION, 0))
    calls.syscall(number, header, ctypes.create_string_buffer(bytes(24)))


def limit_resources() -> None:
    """No core dumps, which would contain keys; a limit on tasks; the first to be ended when memory ends.

    Root's tasks are not limited by any of this. Raises OSError.
    """
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_NPROC, tasks_of(os.getuid()) + TASKS)
    Path("/proc/self/oom_score_adj").write_text(str(OUT_OF_MEMORY_SCORE))


def limit_files(largest: int) -> None:
    """No file that this process or its children write becomes larger than so many bytes. Does nothing on Windows."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - as above

    _lower(resource.RLIMIT_FSIZE, largest)


def check_memory(own: Path = OWN_GROUP, groups: Path = GROUPS) -> None:
    """Find out whether the kernel limits the memory of this process and its children together.

    The engine has asked systemd for such a control group, and the worker cannot leave it: the files of control groups are
    read-only for it. Only those of version 2 are known. Raises OSError.
    """
    name = next((line[3:] for line in own.read_text().splitlines() if line.startswith("0::")), None)
    if name is None:
        raise OSError("this system has no control groups of version 2")
    try:
        most = (groups / name.lstrip("/") / "memory.max").read_text().strip()
    except OSError:  # nobody has made a group for it, or the controller is not the user's
        most = "max"
    if most == "max" or int(most) >= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise OSError("its control group has no limit")


def _lower(limit: int, wanted: int) -> None:
    import resource  # noqa: PLC0415 - as above

    _, most = resource.getrlimit(limit)
    now = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(limit, (now, now))


def tasks_of(user: int) -> int:
    """How many threads the user's processes have."""
    count = 0
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and process.stat().st_uid == user:
                count += len(os.listdir(process / "task"))  # noqa: PTH208 - a count, of hundreds
    return count
