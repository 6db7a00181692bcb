"""Calls to Linux for which Python has no function, by ctypes.

The numbers of calls are those of asm/unistd.h; since Linux 5.1 new calls have the same number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

LIBC: Final[Any] = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

# linux/prctl.h
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
MOUNT_SETATTR: Final = 442
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446

PIVOT_ROOT: Final[Mapping[str, int]] = {"x86_64": 155, "aarch64": 41}
"""By the architecture that `machine` names."""


def machine() -> str:
    """The architecture of this process, as uname names it."""
    return os.uname().machine if sys.maxsize > 2**32 else ""


def syscall(number: int, *arguments: Any) -> int:
    """Raises OSError. Integers are passed with 64 bits, `bytes` as a C string, other values as ctypes passes them."""
    return _call("syscall", number, *arguments)


def prctl(option: int, *arguments: int) -> int:
    """Raises OSError."""
    return _call("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def unshare(flags: int) -> None:
    """Raises OSError."""
    _call("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Raises OSError."""
    _call("mount", *(each.encode() if isinstance(each, str) else each for each in (source, target, kind, flags, data)))


def umount(target: str, flags: int) -> None:
    """Raises OSError."""
    _call("umount2", target.encode(), flags)


def _call(name: str, *arguments: Any) -> int:
    if LIBC is None:
        raise OSError("not on this system")
    function = LIBC[name]  # indexing makes a function object of its own, so that the result type stays ours
    function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    result: int = function(*(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
