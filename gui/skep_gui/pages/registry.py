"""`PageKind`, the description of a page, and the list of all pages."""

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
"""The modules of this package that define PAGE, in the order of the navigation and of the shortcuts."""

W = TypeVar("W", bound=QWidget)


@dataclass(frozen=True)
class Requests:
    """Signals by which pages make requests to the app and the window."""

    pause: Callable[[float | None], None]
    """The end in wall clock seconds; None: until Resume."""
    resume: Callable[[], None]
    leave: Callable[[bool], None]
    """Leave the project: immediately, or after the round."""
    leave_or_cancel: Callable[[], None]
    """Also leaves a practice swarm that is still starting."""
    go_to_projects: Callable[[], None]
    go_to_setting: Callable[[str], None]
    change_setting: Callable[[str, Value], None]
    read_record: Callable[[], None]
    export: Callable[[str], None]
    """Write the record to this path."""
    save_result: Callable[[str], None]
    """Ask for a file, and copy the model that is kept of this project there."""
    offer_devices: Callable[[], None]
    first_run: Callable[[], None]
    diagnose: Callable[[], None]
    look_for_update: Callable[[], None]
    go_back_to_older: Callable[[], None]
    look_at_packs: Callable[[], None]
    fetch_pack: Callable[[], None]
    cancel_pack: Callable[[], None]
    free_packs: Callable[[], None]
    """Remove those that are not used."""


def _nothing(_page: QWidget, _snapshot: Snapshot, _history: History, _now: float) -> None:
    """The `show` of a page that does not depend on the snapshot."""


@dataclass(frozen=True)
class PageKind(Generic[W]):
    """How a page is made, which requests it makes, what it shows; its title is its window title.

    `show` is called with each snapshot while the window is visible; its last argument is wall clock seconds.
    """

    make: Callable[[Translation], W]
    connect: Callable[[W, Requests], None]
    show: Callable[[W, Snapshot, History, float], None] = _nothing


def kinds() -> Sequence[PageKind[Any]]:
    return [import_module(f"skep_gui.pages.{name}").PAGE for name in _PAGES]
