"""Remembers a manual pause across restarts, in a small JSON file.

It must not judge whether a pause is over: it has no clock, and the session decides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from skep.adapters.storage.files import atomic_write, os_errors
from skep.core.text import Text

FARTHEST: Final = 1e11
"""Seconds since the epoch; a later end is no date any clock shows, so it is none."""


class PauseFile:
    """Implements ports.Pauses."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, *, paused: bool, until: float | None) -> None:
        """Raises StorageError."""
        with os_errors(
            lambda reason: Text("pause_file.pause_cannot_remembered", path=str(self._path), strerror=reason),
            Text("pause_file.holds_until_skep_ends_free"),
        ):
            if paused:
                atomic_write(self._path, json.dumps({"until": until}).encode())
            else:
                self._path.unlink(missing_ok=True)

    def load(self) -> tuple[bool, float | None]:
        """Whether a pause was saved, and its end in seconds since the epoch. Raises StorageError.

        A file that is there but damaged counts as a pause without an end: somebody did ask for a pause.
        """
        with os_errors(
            lambda reason: Text("pause_file.cannot_read", path=str(self._path), strerror=reason),
            Text("pause_file.make_file_readable_you_remove"),
        ):
            try:
                return True, _until(self._path.read_bytes())
            except FileNotFoundError:
                return False, None


def _until(content: bytes) -> float | None:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    until = body.get("until") if isinstance(body, dict) else None
    if not isinstance(until, int | float) or isinstance(until, bool) or not 0 <= until <= FARTHEST:
        return None
    return float(until)
