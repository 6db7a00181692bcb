"""A scope of systemd for the worker: the kernel then limits the memory and the tasks of its whole process tree.

Desktops put the programs that they start into scopes in the same way: systemd makes a control group, moves the process
there, and removes it when the last process has ended (systemd.scope(5), org.freedesktop.systemd1(5)).
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Mapping
from typing import Final

import psutil

from skep.adapters.linux.bus import Bus, Target, session_address, system_address
from skep.adapters.process.process_tree import group_name
from skep.adapters.sensors.source import NoAnswer, Silent
from skep.core.text import verbatim

ANSWER_SECONDS: Final = 2.0
"""How long systemd may take in all; it takes hundredths of a second."""
CUT_SECONDS: Final = 0.1
"""How much later a call is broken off, so that who waits for the job sees first that the time is up."""
LARGEST_PART: Final = 0.9
LEAST_PART: Final = 0.25
"""Bounds of the limit as parts of the computer's memory: below the least one the worker could not even say what it lacks."""
SWAP_PART: Final = 0.5
"""Of the computer's swap: the worker's idle memory may be swapped out, and the other half is left for the person."""
TASKS: Final = 4096
"""Processes and threads: several times those of a worker on a large processor."""
MANAGER: Final = Target("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_JOB_REMOVED: Final = "JobRemoved"
_DONE: Final = "done"

log = logging.getLogger(__name__)


def bus_address(environment: Mapping[str, str], user: int) -> str | None:
    """The bus of the systemd that starts the user's programs: root's is the system's. None without a session bus."""
    return system_address(environment) if user == 0 else session_address(environment)


def most_memory(leave: int, total: int) -> int:
    """Bytes that the worker may use at most, of `total`, so that `leave` are free for other programs."""
    return max(round(LEAST_PART * total), min(total - leave, round(LARGEST_PART * total)))


def limit_memory(pid: int, leave: int, *, seconds: float = ANSWER_SECONDS) -> None:
    """Move the process `pid` to a scope in which at least `leave` bytes of memory remain for other programs.

    Returns when it is there. A failure is only logged: what is enforced is found out in the process itself.
    """
    deadline = time.monotonic() + seconds
    try:
        # two answers connect; systemd needs a hundredth of that for each
        bus = Bus(bus_address(os.environ, os.geteuid()), patience=seconds / 2)
    except NoAnswer as error:
        log.info("no limit on the worker's memory: %s", error)
        return
    # each answer comes in time, and all together may not
    late = threading.Timer(max(0.0, deadline - time.monotonic()) + CUT_SECONDS, bus.cut)
    late.daemon = True
    late.start()
    try:
        bus.ask(lambda bus: _move(bus, pid, leave, deadline))
    except NoAnswer as error:
        log.info("no limit on the worker's memory: %s", "too slow" if time.monotonic() >= deadline else error)
    finally:
        late.cancel()
        bus.close()


def _move(bus: Bus, pid: int, leave: int, deadline: float) -> None:
    bus.call(MANAGER, "Subscribe")
    bus.listen(MANAGER, _JOB_REMOVED, any_object=False)
    properties = [
        ("Description", ("s", "skep, training")),
        ("PIDs", ("au", [pid])),
        ("MemoryMax", ("t", most_memory(leave, psutil.virtual_memory().total))),
        ("MemorySwapMax", ("t", round(SWAP_PART * psutil.swap_memory().total))),
        ("TasksMax", ("t", TASKS)),
        # one that was ended for its memory leaves no failed unit behind
        ("CollectMode", ("s", "inactive-or-failed")),
    ]
    unit = group_name(pid)
    (job,) = bus.call(MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))", (unit, "fail", properties, []))
    result = _result(bus, job, deadline)
    if result != _DONE:
        raise Silent(verbatim(f"{unit}: {result}"))


def _result(bus: Bus, job: str, deadline: float) -> str:
    """What has become of a job."""
    while True:
        for name, values in bus.news():
            if name == _JOB_REMOVED and values[1] == job:
                return str(values[3])
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([bus], [], [], left)[0]:
            return "timeout"
