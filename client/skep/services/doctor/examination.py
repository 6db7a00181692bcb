"""One examination: which checks, all at the same time, their findings as they come, and a deadline for all."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from skep.core.errors import SkepError
from skep.core.findings import Check, Finding, State
from skep.core.text import Text
from skep.services.doctor import computer, network
from skep.services.doctor.case import WITHIN_SECONDS, Case, Task
from skep.services.doctor.peers import peers

MARGIN_SECONDS: Final = 3.0
"""The process that asks peers ends this long before all is over, so that its findings are complete."""
LOOK_SECONDS: Final = 0.1
"""How soon the end of the time, or a stop, is seen."""
STEP_SECONDS: Final = 1.0
"""A clock that moved by more during the examination was set."""

log = logging.getLogger(__name__)


def examine(
    case: Case, within: float = WITHIN_SECONDS, *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Finding]:
    """Every finding as soon as it is known, for at most about `within` seconds, or until `stopped`."""
    try:
        case = case.as_set()
    except SkepError as error:
        yield Finding(Check.HOME, State.FAIL, error.title, error.hint)
    yield from at_once(plan(case, within), within, stopped=stopped)


def plan(case: Case, within: float = WITHIN_SECONDS) -> Sequence[Task]:
    """The checks of a case."""
    here = [
        Task(Check.RUNNING, partial(computer.running, case)),
        Task(Check.HOME, partial(computer.home, case)),
        Task(Check.DEVICE, partial(computer.devices, case)),
        Task(Check.KEYRING, partial(computer.keyring, case)),
        Task(Check.SANDBOX, computer.sandbox),
        Task(Check.CLOCK, computer.clock),
    ]
    if case.project is None:
        return here
    return [
        *here,
        *network.names(case),
        *network.seeds(case),
        Task(Check.KNOWN_PEERS, partial(network.known_peers, case)),
        Task(Check.DATA, partial(network.server, case)),
        Task(Check.HANDSHAKE, partial(peers, case, within - MARGIN_SECONDS)),
    ]


def at_once(
    tasks: Sequence[Task],
    within: float,
    clocks: Callable[[], tuple[float, float]] = lambda: (time.time(), time.monotonic()),
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Finding]:
    """The findings of all tasks, each task in a thread; what has not ended `within` seconds is reported as such.

    `clocks` returns wall clock and monotonic seconds.
    """
    told: queue.SimpleQueue[tuple[Task, Finding | None]] = queue.SimpleQueue()
    began_wall, began = clocks()
    deadline, left = time.monotonic() + within, list(tasks)
    for task in tasks:
        # a thread that may be abandoned: a name server or a keyring may hang, and cannot be aborted
        threading.Thread(target=_carry_out, args=(task, told.put), name=f"doctor-{task.check}", daemon=True).start()
    while left and time.monotonic() < deadline:
        if stopped():
            return
        try:
            task, finding = told.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            continue
        if finding is None:
            left.remove(task)
        else:
            yield finding
    for task in left:
        found = Text("doctor.no_answer_within", seconds=within)
        yield Finding(task.check, State.FAIL, found, Text("doctor.try_again"), task.subject)
    wall, now = clocks()
    if abs(step := (wall - began_wall) - (now - began)) > STEP_SECONDS:
        advice = Text("doctor.one_time_service")
        yield Finding(Check.CLOCK, State.WARN, Text("doctor.clock_was_set", span=abs(step)), advice)


def _carry_out(task: Task, tell: Callable[[tuple[Task, Finding | None]], None]) -> None:
    try:
        for finding in task.run():
            tell((task, finding))
    except SkepError as error:
        tell((task, Finding(task.check, State.FAIL, error.title, error.hint, task.subject)))
    except Exception as error:
        log.exception("a check of the doctor failed")
        found = Text("doctor.own_mistake", kind=type(error).__name__)
        tell((task, Finding(task.check, State.FAIL, found, Text("doctor.report_it"), task.subject)))
    tell((task, None))
