"""Confining this process: every part of the sandbox that this system has, in order, and what is enforced in the end.

A part that the system lacks is reported and does not keep the worker from training. Call it before any thread is
started: the kernel confines the calling thread, and those that it starts later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from skep.core.sandbox import Guard, Level, Sandbox
from skep.worker.sandbox import landlock, limits, private_root, seccomp
from skep.worker.sandbox.cards import compute_on_cards, why_blocked
from skep.worker.sandbox.rules import DEVICE_CACHES, Own, Rule, rules

OFF: Final = "switched off"
BLOCKED: Final = "a graphics card does not compute with it"
LOWER: Final[Mapping[Level, Sequence[Level]]] = {
    Level.BEST: (Level.LANDLOCK, Level.ROOT, Level.NONE),
    Level.LANDLOCK: (Level.NONE,),
    Level.ROOT: (Level.NONE,),
    Level.NONE: (),
}
"""The levels that are tried instead, in turn."""
Compute = Callable[[], object]
_TASKS: Final = Path("/proc/self/task")


def confine(
    own: Own, level: Level = Level.BEST, *, cards: bool = False, compute: Compute = compute_on_cards
) -> Sandbox:
    """Raises RuntimeError if there is a second thread: it would stay free.

    With `cards` less is taken if a graphics card computes with that only: as `compute` finds out, which raises OSError
    with the first step that fails.
    """
    if sys.platform != "linux":
        return Sandbox(dict.fromkeys(Guard, "this system has none"))
    if len(list(_TASKS.iterdir())) > 1:
        raise RuntimeError("the worker confines itself before it starts threads")
    turns = list(_in_turn(level)) if cards else [(level, False)]
    reasons: list[str] = []
    for chosen, memory_files in turns[:-1]:
        if not (reason := why_blocked(partial(_confine, own, chosen, memory_files=memory_files), compute)):
            break
        reasons.append(reason)
    else:
        chosen, memory_files = turns[-1]
    return _confine(own, chosen, f"{BLOCKED}: {reasons[0]}" if reasons else OFF, memory_files=memory_files)


def _in_turn(level: Level) -> Iterator[tuple[Level, bool]]:
    """The level and the lower ones, each without and with programs in files in memory, which a driver may need."""
    for each in (level, *LOWER[level]):
        yield each, False
        if each is not Level.NONE:
            yield each, True


def _confine(own: Own, level: Level, off: str = OFF, *, memory_files: bool) -> Sandbox:
    """`off` is the reason for what is left out. Parts may be done when OSError is raised."""
    if level is Level.NONE:
        return Sandbox(dict.fromkeys(Guard, off))
    _make(own)
    reachable = rules(own)
    missing: dict[Guard, str] = {}

    def attempt(do: Callable[[], object], *guards: Guard) -> None:
        try:
            do()
        except OSError as error:
            missing.update(dict.fromkeys(guards, str(error.strerror or error)))

    def unless(left_out: Level, do: Callable[[], object]) -> None:
        if level is left_out:
            raise OSError(off)
        do()

    attempt(limits.no_new_privileges, Guard.PRIVILEGES)
    attempt(lambda: unless(Level.LANDLOCK, lambda: _enter_root(reachable, own)), Guard.SERVICES)
    attempt(limits.limit_resources, Guard.LIMITS)
    attempt(limits.check_memory, Guard.MEMORY)
    files = (Guard.FILES, Guard.PROGRAMS, Guard.PROCESSES)
    attempt(lambda: unless(Level.ROOT, lambda: _landlock(reachable, missing)), *files)
    if Guard.SERVICES not in missing:
        missing.pop(Guard.FILES, None)  # the private root has no other files
    attempt(limits.drop_capabilities, Guard.PRIVILEGES)
    attempt(partial(seccomp.restrict, memory_files=memory_files), Guard.CALLS, Guard.PROGRAMS)
    if memory_files:
        missing[Guard.PROGRAMS] = off
    return Sandbox(missing)


def _make(own: Own) -> None:
    """Make the worker's folders: only what exists can be in a rule. And name those for caches of compiled kernels."""
    for folder in filter(None, (*own.writes, *own.reads)):
        with suppress(OSError):  # said when the folder is used
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in DEVICE_CACHES:
        os.environ[name] = own.run


def _enter_root(reachable: Iterable[Rule], own: Own) -> None:
    found, place = list(reachable), Path(own.run)
    if reason := private_root.why_not(found, place):
        raise OSError(reason)
    private_root.enter(found, place)


def _landlock(reachable: Iterable[Rule], missing: dict[Guard, str]) -> None:
    version = landlock.abi()
    landlock.restrict(reachable, version)
    if version < landlock.SCOPES_ABI:
        missing[Guard.PROCESSES] = f"Landlock {version} does not refuse signals"
