"""The four lengths of a pause as menu entries, the same in the tray and in the window."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtWidgets import QMenu

from skep_gui.words.now import Now


def fill_pause_menu(menu: QMenu, words: Now, chosen: Callable[[float | None], None]) -> None:
    """Fill it anew. When an entry is chosen, its end is counted from then, not from when the menu was made."""
    menu.clear()
    for place, choice in enumerate(words.pauses(time.time())):
        action = menu.addAction(choice.text)
        action.triggered.connect(lambda _=False, place=place: chosen(words.pauses(time.time())[place].until))
