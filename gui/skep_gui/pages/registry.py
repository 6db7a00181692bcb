"""The pages of the window."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from skep_gui.pages.page_kind import PageKind

_PAGES: Final = (
    "now_page",
    "projects_page",
    "stats_page",
    "settings_page",
)
"""The modules of this package whose PAGE is one, in the order of the rail and of the shortcuts."""


def kinds() -> Sequence[PageKind[Any]]:
    return [import_module(f"skep_gui.pages.{name}").PAGE for name in _PAGES]
