"""Keeps PySide from ending the app: on Python 3.11, PySide 6.12 gives up one reference to True with each signal it emits.

After some hundred signals none would be left, and the interpreter would abort. Python 3.12 made True immortal; this does
the same for 3.11. tests/gui shows the fault and its absence.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

PLENTY: Final = 1 << 40
"""References that no app lives long enough to give up."""


def keep_true() -> None:
    """Call before the first signal is emitted. More than once does no harm."""
    if sys.version_info < (3, 12):
        # the count is the first word of every object in CPython
        ctypes.c_ssize_t.from_address(id(True)).value += PLENTY
