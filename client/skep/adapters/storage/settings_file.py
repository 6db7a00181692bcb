"""The user's choices in files of the home: the settings in TOML, and a manual pause in JSON.

Users may edit the settings file: its comments, order and unknown keys are kept, and the file is read at every call, so
that edits are not overwritten. `core.settings` defines the settings; shares are written in percent. The session decides
whether a pause is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError

from skep.adapters.storage.files import atomic_write, name_aside, os_errors
from skep.core.errors import SettingsError
from skep.core.policy.allowance import FARTHEST
from skep.core.settings import settings
from skep.core.settings.setting import Value
from skep.core.settings.settings import DEFAULTS, SETTINGS
from skep.core.text import Text, verbatim

LIMIT: Final = 256 * 1024
"""Largest settings file in bytes that is read; ours is under 2 kB."""


class SettingsFile:
    """Implements ports.SettingsStore."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, Value]:
        """Every known setting: from the file, else its default. Raises SettingsError, StorageError."""
        return dict(DEFAULTS) | self._values(*self._read())

    def save(self, values: dict[str, Value]) -> None:
        """Write these values, unless the file has them already.

        A chosen value that equals the default is written too, since the default may change in a later version.
        Raises SettingsError (also for a damaged file, which is not changed) and StorageError.
        """
        text, document = self._read()
        present = self._values(text, document)
        wanted = {key: settings.check(key, value) for key, value in values.items()}
        changed = {key: value for key, value in wanted.items() if key not in present or value != present[key]}
        for key, value in changed.items():
            self._put(text, document, key, settings.to_file(key, value))
        if changed:
            with os_errors(
                Text("setting.settings_cannot_written", path=str(self._path)), Text("setting.old_ones_kept_free_some")
            ):
                atomic_write(self._path.resolve(), tomlkit.dumps(document).encode(), mode=0o600)

    def set_aside(self) -> Path | None:
        """Rename the file so that the defaults apply; return the new path, None without a file. Raises StorageError."""
        with os_errors(
            Text("setting.settings_file_cannot_moved_away", path=str(self._path)),
            Text("setting.make_folder_writable_you"),
        ):
            try:
                return self._path.rename(name_aside(self._path))
            except FileNotFoundError:
                return None

    def _read(self) -> tuple[str, TOMLDocument]:
        with os_errors(
            Text("setting.settings_file_cannot_read", path=str(self._path)), Text("setting.make_readable_you")
        ):
            try:
                raw = self._path.read_bytes()[: LIMIT + 1]
            except FileNotFoundError:
                raw = b""
        return self._parsed(raw)

    def _parsed(self, raw: bytes) -> tuple[str, TOMLDocument]:
        if len(raw) > LIMIT:
            raise SettingsError(
                Text("setting.settings_file_over_kib", path=str(self._path), limit=LIMIT // 1024), _MEND
            )
        try:
            text = raw.decode()
            document = tomlkit.parse(text)
            document.unwrap()  # only this detects a table that is defined twice in parts
        except UnicodeDecodeError:
            raise SettingsError(Text("setting.settings_file_not_utf_8", path=str(self._path)), _MEND) from None
        except (TOMLKitError, ValueError, RecursionError) as error:
            line = getattr(error, "line", None)
            where = Text("setting.in_line", line=line) if line else Text("setting.cannot_read_toml")
            raise SettingsError(
                Text("setting.settings_file_damaged", path=str(self._path), where=where), _MEND
            ) from None
        return text, document

    def _values(self, text: str, document: TOMLDocument) -> dict[str, Value]:
        found = {}
        plain = document.unwrap()
        for key in SETTINGS:
            group, _, name = key.partition(".")
            table = plain.get(group, {})
            if not isinstance(table, Mapping):
                raise self._refusal(text, group, Text("setting.must_group_settings", group=group))
            if name in table:
                try:
                    found[key] = settings.from_file(key, table[name])
                except SettingsError as error:
                    raise self._refusal(text, key, error.title) from None
        return found

    def _refusal(self, text: str, key: str, sentence: Text) -> SettingsError:
        line = _line_of(text, key)
        where = Text("setting.in_path_and_line", path=str(self._path), line=line) if line else verbatim(str(self._path))
        return SettingsError(Text("setting.wrong_there", where=where, sentence=sentence), _MEND)

    def _put(self, text: str, document: TOMLDocument, key: str, value: Value) -> None:
        group, _, name = key.partition(".")
        try:
            table: Any = document.setdefault(group, tomlkit.table())
            table[name] = value
        except (TOMLKitError, TypeError) as error:
            raise self._refusal(text, key, Text("setting.cannot_written_there", key=key, reason=str(error))) from None


_MEND: Final = Text("setting.mend_text_editor_move_file")


def _line_of(text: str, key: str) -> int | None:
    """The line that sets `key`, counted from 1, for a message; it may miss unusual spellings."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line):
            section = header.group(1) + "."
            if section == key + ".":
                return number
        elif (name := re.match(r"\s*([\w.-]+)\s*=", line)) and section + name.group(1) == key:
            return number
    return None


class _Pause(msgspec.Struct):
    until: Annotated[float, msgspec.Meta(ge=0, le=FARTHEST)] | None = None


class PauseFile:
    """Implements ports.Pauses."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, *, paused: bool, until: float | None) -> None:
        """Raises StorageError."""
        with os_errors(
            Text("pause_file.pause_cannot_remembered", path=str(self._path)),
            Text("pause_file.holds_until_skep_ends_free"),
        ):
            if paused:
                atomic_write(self._path, msgspec.json.encode(_Pause(until)))
            else:
                self._path.unlink(missing_ok=True)

    def load(self) -> tuple[bool, float | None]:
        """Whether a pause was saved, and its end in seconds since the epoch. Raises StorageError.

        A damaged file counts as a pause without an end, since a pause was requested.
        """
        with os_errors(
            Text("pause_file.cannot_read", path=str(self._path)), Text("pause_file.make_file_readable_you_remove")
        ):
            try:
                return True, msgspec.json.decode(self._path.read_bytes(), type=_Pause).until
            except FileNotFoundError:
                return False, None
            except (ValueError, RecursionError):
                return True, None
