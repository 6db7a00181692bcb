"""Prepares the interpreter for Qt. Call `prepare` before the first Qt object is made."""

from __future__ import annotations

import sys


def prepare() -> None:
    """On CPython 3.11, keep PySide from releasing the last reference to None or True."""
    if sys.version_info < (3, 12):
        from skep_gui.app.immortal_singletons import add_references  # noqa: PLC0415 - needed on CPython 3.11 alone

        add_references()
