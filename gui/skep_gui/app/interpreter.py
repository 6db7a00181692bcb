"""Prepares the interpreter for Qt. Call `prepare` before the first Qt object is made.

PySide 6.12 on CPython 3.11 releases references to True and None that it does not own: one for each signal emitted, one
for each call that returns nothing. After some thousand of them the count reaches zero and the interpreter aborts. The
draft of the upstream report is docs/upstream/pyside-references.md.
"""

from __future__ import annotations

import sys
from typing import Final

EXTRA_REFERENCES: Final = 1 << 40
"""More references than a process can release in years."""


def prepare() -> None:
    """On CPython 3.11, make None, True and False immortal, as CPython 3.12 does itself (PEP 683). May be called
    repeatedly.
    """
    if sys.version_info < (3, 12):
        import ctypes  # noqa: PLC0415 - needed on CPython 3.11 alone

        for each in (None, True, False):
            # the reference count is the first word of every object in CPython 3.11
            ctypes.c_ssize_t.from_address(id(each)).value += EXTRA_REFERENCES
