"""Confining this process: every part of the sandbox that this system has, in order, and what is enforced in the end.

A part that the system lacks is reported and does not keep the worker from training. Call it before any thread is
started: the kernel confines the calling thread, and those that it starts later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from skep.core.sandbox import Guard, Level, Sandbox
from skep.worker.sandbox import landlock, limits, private_root, seccomp
from skep.worker.sandbox.rules import DEVICE_CACHES, Own, Rule, rules

OFF: Final = "switched off"
_TASKS: Final = Path("/proc/self/task")


def confine(own: Own, level: Level = Level.BEST) -> Sandbox:
    """Raises RuntimeError if there is a second thread: it would stay free."""
    if sys.platform != "linux":
        return Sandbox(dict.fromkeys(Guard, "this system has none"))
    if level is Level.NONE:
        return Sandbox(dict.fromkeys(Guard, OFF))
    if len(list(_TASKS.iterdir())) > 1:
        raise RuntimeError("the worker confines itself before it starts threads")
    _make(own)
    reachable = rules(own)
    missing: dict[Guard, str] = {}

    def attempt(do: Callable[[], object], *guards: Guard) -> None:
        try:
            do()
        except OSError as error:
            missing.update(dict.fromkeys(guards, str(error.strerror or error)))

    attempt(limits.no_new_privileges, Guard.PRIVILEGES)
    attempt(lambda: _enter_root(reachable, own, level), Guard.SERVICES)
    attempt(limits.limit_resources, Guard.LIMITS)
    attempt(lambda: _landlock(reachable, level, missing), Guard.FILES, Guard.PROGRAMS, Guard.PROCESSES)
    if Guard.SERVICES not in missing:
        missing.pop(Guard.FILES, None)  # the private root has no other files
    attempt(limits.drop_capabilities, Guard.PRIVILEGES)
    attempt(seccomp.restrict, Guard.CALLS)
    return Sandbox(missing)


def _make(own: Own) -> None:
    """Make the worker's folders: only what exists can be in a rule. And name those for caches of compiled kernels."""
    for folder in filter(None, (*own.writes, *own.reads)):
        with suppress(OSError):  # said when the folder is used
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in DEVICE_CACHES:
        os.environ[name] = own.run


def _enter_root(reachable: Iterable[Rule], own: Own, level: Level) -> None:
    if level is Level.LANDLOCK:
        raise OSError(OFF)
    found, place = list(reachable), Path(own.run)
    if reason := private_root.why_not(found, place):
        raise OSError(reason)
    private_root.enter(found, place)


def _landlock(reachable: Iterable[Rule], level: Level, missing: dict[Guard, str]) -> None:
    if level is Level.ROOT:
        raise OSError(OFF)
    version = landlock.abi()
    landlock.restrict(reachable, version)
    if version < landlock.SCOPES_ABI:
        missing[Guard.PROCESSES] = f"Landlock {version} does not refuse signals"
