"""What a page of the window is, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from PySide6.QtWidgets import QWidget

from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep_gui.words.now import History
from skep_gui.words.translation import Translation

_PAGES: Final = (
    "now_page",
    "projects_page",
    "stats_page",
    "settings_page",
)
"""The modules of this package whose PAGE is one, in the order of the rail and of the shortcuts."""

W = TypeVar("W", bound=QWidget)


@dataclass(frozen=True)
class Requests:
    """What a page may ask of the app and of the window."""

    pause: Callable[[float | None], None]
    """Until a moment in wall clock seconds; None: until Resume."""
    resume: Callable[[], None]
    leave: Callable[[bool], None]
    """Leave the project: at once, or after the round."""
    leave_or_cancel: Callable[[], None]
    """Also from a practice swarm that is still starting."""
    go_to_projects: Callable[[], None]
    go_to_setting: Callable[[str], None]
    change_setting: Callable[[str, Value], None]
    read_record: Callable[[], None]
    export: Callable[[str], None]
    """Write the record to a path."""
    offer_devices: Callable[[], None]
    first_run: Callable[[], None]
    diagnose: Callable[[], None]
    look_for_update: Callable[[], None]
    go_back_to_older: Callable[[], None]


def _nothing(_page: QWidget, _snapshot: Snapshot, _history: History, _now: float) -> None:
    """For a page that shows nothing of the snapshot."""


@dataclass(frozen=True)
class PageKind(Generic[W]):
    """How a page is made, what it asks for, what it shows; its title is its window title.

    `show` is called with each snapshot while the window is seen; its last argument is wall clock seconds.
    """

    make: Callable[[Translation], W]
    connect: Callable[[W, Requests], None]
    show: Callable[[W, Snapshot, History, float], None] = _nothing


def kinds() -> Sequence[PageKind[Any]]:
    return [import_module(f"skep_gui.pages.{name}").PAGE for name in _PAGES]
