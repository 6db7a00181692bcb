"""What a page of the window is: how it is made, what it asks for, what it shows. Its title is its window title."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from PySide6.QtWidgets import QWidget

from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep_gui.widgets.history import History
from skep_gui.words.translation import Translation

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
    """`show` is called with each snapshot while the window is seen; its last argument is wall clock seconds."""

    make: Callable[[Translation], W]
    connect: Callable[[W, Requests], None]
    show: Callable[[W, Snapshot, History, float], None] = _nothing
