"""The user's choices in files of the home: the settings in TOML, and a manual pause in JSON.

Users may edit the settings file: its comments, order and unknown keys are kept, and the file is read at every call, so
that edits are not overwritten. A copy of what was used last replaces it when it is damaged. `core.settings` defines the
settings; shares are written in percent. The session decides whether a pause is over.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError

from skep.adapters.storage.files import atomic_write, name_aside, os_errors
from skep.core.errors import SettingsError, StorageError
from skep.core.policy.allowance import FARTHEST
from skep.core.settings import settings
from skep.core.settings.setting import Value
from skep.core.settings.settings import DEFAULTS, SETTINGS
from skep.core.text import Problem, Remedy, Text, verbatim

LIMIT: Final = 256 * 1024
"""Largest settings file in bytes that is read; ours is under 2 kB."""


@dataclass(frozen=True)
class Mending:
    """What the holder of the home's lock does about a file that cannot be read.

    `told` learns that it was replaced by the copy. Without a copy the defaults apply, which may permit more than the
    person did: then `guard` is called first, and nothing is replaced if it raises.
    """

    told: Callable[[Problem], None]
    guard: Callable[[], None]


class SettingsFile:
    """Implements ports.SettingsStore."""

    def __init__(self, path: Path, copy: Path | None = None, *, mending: Mending | None = None) -> None:
        """`copy` keeps the settings that were used last; with it, a file that was cut off is found damaged too."""
        self._path, self._copy, self._mending = path, copy, mending

    def load(self) -> dict[str, Value]:
        """Every known setting: from the file, else its default. Raises SettingsError, StorageError."""
        text, document = self._read(guarded=True)
        values = self._values(text, document)
        if self._mending:
            self._remember(text)
        return dict(DEFAULTS) | values

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
            self._remember(tomlkit.dumps(document))

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

    def _read(self, *, guarded: bool = False) -> tuple[str, TOMLDocument]:
        """With `guarded`, the defaults may replace what is damaged."""
        raw = self._bytes(self._path)
        try:
            self._refuse_cut(raw)
            return self._parsed(raw or b"")
        except SettingsError:
            mended = self._mended(self._mending, guarded=guarded) if self._mending else None
            if mended is None:
                raise
            return mended

    def _bytes(self, path: Path) -> bytes | None:
        with os_errors(Text("setting.settings_file_cannot_read", path=str(path)), Text("setting.make_readable_you")):
            try:
                with path.open("rb") as file:
                    return file.read(LIMIT + 1)
            except FileNotFoundError:
                return None

    def _refuse_cut(self, raw: bytes | None) -> None:
        """Raises SettingsError for a file that is empty, which skep never writes, or the beginning of what it used last."""
        if raw is None or self._copy is None:
            return
        if not raw or (self._begins_copy(self._copy, raw) and self._last()):
            raise SettingsError(Text("setting.settings_file_cut", path=str(self._path)), _MEND_DAMAGED)

    def _begins_copy(self, copy: Path, raw: bytes) -> bool:
        with contextlib.suppress(StorageError):
            kept = self._bytes(copy)
            return kept is not None and kept != raw and kept.startswith(raw)
        return False

    def _mended(self, mending: Mending, *, guarded: bool) -> tuple[str, TOMLDocument] | None:
        """The copy, which replaces the file if that can be written; or nothing, if `guarded`; or None."""
        if last := self._last():
            mending.told(Problem(Text("setting.damaged_last_used"), self._replace(last[0]), Remedy.SETTINGS))
            return last
        if not guarded:
            return None
        mending.guard()
        hint = Text("setting.look_at_limits_resume", aside=str(self.set_aside()))
        mending.told(Problem(Text("setting.damaged_defaults_paused"), hint, Remedy.SETTINGS))
        return self._parsed(b"")

    def _last(self) -> tuple[str, TOMLDocument] | None:
        """The copy, None if there is none or it is damaged too."""
        try:
            if self._copy is not None and (raw := self._bytes(self._copy)):
                read = self._parsed(raw)
                self._values(*read)
                return read
        except (SettingsError, StorageError):
            pass
        return None

    def _replace(self, text: str) -> Text:
        """Replace the damaged file, which is kept; the sentence that says where, or why this failed."""
        path = self._path.resolve()
        aside = name_aside(path)
        try:
            aside.hardlink_to(path)
            atomic_write(path, text.encode(), mode=0o600)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            return Text("setting.damaged_file_not_replaced", path=str(path), reason=str(error.strerror or error))
        return Text("setting.damaged_file_kept_as", aside=str(aside))

    def _remember(self, text: str) -> None:
        """Make the copy equal to the file, if that can be written; without a file there is none."""
        if self._copy is None:
            return
        with contextlib.suppress(OSError):
            if not text:
                self._copy.unlink(missing_ok=True)
            elif not self._copy.exists() or self._copy.read_bytes() != text.encode():
                atomic_write(self._copy, text.encode(), mode=0o600)

    def _parsed(self, raw: bytes) -> tuple[str, TOMLDocument]:
        if len(raw) > LIMIT:
            raise SettingsError(
                Text("setting.settings_file_over_kib", path=str(self._path), limit=LIMIT // 1024), _MEND_DAMAGED
            )
        try:
            text = raw.decode()
            document = tomlkit.parse(text)
            document.unwrap()  # only this detects a table that is defined twice in parts
        except UnicodeDecodeError:
            raise SettingsError(Text("setting.settings_file_not_utf_8", path=str(self._path)), _MEND_DAMAGED) from None
        except (TOMLKitError, ValueError, RecursionError) as error:
            line = getattr(error, "line", None)
            where = Text("setting.in_line", line=line) if line else Text("setting.cannot_read_toml")
            raise SettingsError(
                Text("setting.settings_file_damaged", path=str(self._path), where=where), _MEND_DAMAGED
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


_MEND_DAMAGED: Final = Text("setting.start_skep_or_mend")
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
