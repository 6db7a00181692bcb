"""What the app is given at its start: options, and what makes its window when somebody wants to see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from skep_gui.app.main_window import MainWindow
    from skep_gui.pages.first_run import FirstRun


@dataclass
class Options:
    home: str | None = None
    hidden: bool = False
    """Stay in the tray at first."""
    link: str = ""
    """A project to look at: a link, a file or an address. It is never joined by itself."""


class Views(Protocol):
    """What makes the window and its pages; loaded when somebody wants to see them."""

    def make_window(self, app: Any) -> MainWindow: ...
    def speak_anew(self, app: Any, window: MainWindow) -> None: ...
    def first_steps(self, app: Any) -> FirstRun: ...
