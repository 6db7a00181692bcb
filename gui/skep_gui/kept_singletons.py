"""Keeps PySide from ending the app: on Python 3.11, PySide 6.12 gives up references to None and True that are not its own.

Each signal costs one to True, each call that returns nothing one to None; after some thousand none would be left, and the
interpreter would abort. Python 3.12 made both immortal; this does the same for 3.11. A test shows the fault and its absence.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

PLENTY: Final = 1 << 40
"""References that no app lives long enough to give up."""


def keep_singletons() -> None:
    """Call before anything of Qt's. More than once does no harm."""
    if sys.version_info < (3, 12):
        for each in (None, True, False):
            # the count is the first word of every object in CPython
            ctypes.c_ssize_t.from_address(id(each)).value += PLENTY
