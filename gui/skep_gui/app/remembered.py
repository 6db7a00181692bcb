"""The app's own state between two starts, in `window.ini` beside the engine's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QSettings

DONE: Final = "done"
"""Text, since PySide releases a reference that it does not own when it reads a bool from QSettings."""


class Remembered:
    """Without a folder, nothing is stored or read."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat) if folder is not None else None

    @property
    def is_new(self) -> bool:
        """Whether the first steps have not been shown in this home yet."""
        return self._get("first-run-done") != DONE

    def first_run_shown(self) -> None:
        self._put("first-run-done", DONE)

    @property
    def active(self) -> str:
        """The project to join at the next start, "" for none."""
        return self._get("active")

    @active.setter
    def active(self, project_id: str) -> None:
        self._put("active", project_id)

    def once(self, what: str) -> bool:
        """True at the first call in this home."""
        if self._file is None or self._get(f"said/{what}") == DONE:
            return False
        self._put(f"said/{what}", DONE)
        return True

    def _get(self, name: str) -> str:
        return str(self._file.value(name, "")) if self._file is not None else ""

    def _put(self, name: str, value: str) -> None:
        if self._file is None:
            return
        if value:
            self._file.setValue(name, value)
        else:
            self._file.remove(name)
