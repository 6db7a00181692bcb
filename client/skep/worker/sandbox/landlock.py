"""Landlock: this process and those it starts reach only the files of the rules, and no process outside.

By linux/landlock.h and https://docs.kernel.org/userspace-api/landlock.html. Each version of the interface (ABI) knows
more kinds of access; what a system does not know stays allowed there.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from skep.worker.sandbox.calls import LANDLOCK_ADD_RULE, LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, syscall
from skep.worker.sandbox.rules import Access, Rule

_VERSION: Final = 1
_PATH_BENEATH: Final = 1
EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
MAKE_CHAR: Final = 1 << 6
MAKE_BLOCK: Final = 1 << 11
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15
FIRST_ABI: Final = REFER - 1
"""Every kind of access of ABI 1."""
ADDED: Final[Mapping[int, int]] = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
"""By the ABI that added it. ABI 4 is about TCP, which the worker needs."""
OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
SCOPES_ABI: Final = 6
SCOPES: Final = 0b11
"""Abstract unix sockets, and signals, of processes outside."""

_ALLOWED: Final[Mapping[Access, int]] = {
    Access.READ: READ_FILE | READ_DIR,
    Access.LOAD: READ_FILE | READ_DIR,
    Access.RUN: READ_FILE | EXECUTE,
    Access.WRITE: (FIRST_ABI | REFER | TRUNCATE) & ~(EXECUTE | MAKE_CHAR | MAKE_BLOCK),
    Access.DEVICE: READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
}
OWN_PROCESS: Final = Path("/proc/self")
_pinned: list[int] = []
"""Descriptors that keep what a rule is about in the kernel's memory: a rule for a file of /proc ends with its inode."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # the only one with _pack_, and required from Python 3.14 on
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The version of the interface. Raises OSError where there is no Landlock, or it is switched off."""
    return syscall(LANDLOCK_CREATE_RULESET, None, 0, _VERSION)


def restrict(rules: Iterable[Rule], version: int) -> None:
    """Confine this process, which has one thread and no_new_privs, for good. Raises OSError.

    The worker may also write to the files of its own process in /proc: the weight of its session is one.
    """
    handled = FIRST_ABI
    for added, access in ADDED.items():
        handled |= access if version >= added else 0
    asked = _Ruleset(handled, 0, SCOPES if version >= SCOPES_ABI else 0)
    ruleset = syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(asked), ctypes.sizeof(asked), 0)
    try:
        for rule in rules:
            with suppress(FileNotFoundError):  # removed meanwhile
                os.close(_allow(ruleset, rule.path, _ALLOWED[rule.access] & handled))
        _pinned.append(_allow(ruleset, OWN_PROCESS, (READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE) & handled))
        syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> int:
    """Add a rule; returns a descriptor of the path."""
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not stat.S_ISDIR(os.fstat(opened).st_mode):
        access &= OF_FILES
    rule = _Beneath(access, opened)
    syscall(LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    return opened
