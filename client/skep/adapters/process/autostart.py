"""Start at login: the file that the desktop reads, and the setting app.start_at_login, which is read from it.

The file is the only state, also when another program changes or removes it. On Linux and other systems with XDG it is a
desktop entry in the folder `autostart`, on macOS a launch agent. Neither requires running a program.

The launch agent follows launchd.plist(5); it was not run on a Mac yet.
"""

from __future__ import annotations

import configparser
import hashlib
import plistlib
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from skep.adapters.process.programs import app_command
from skep.adapters.storage.files import atomic_write, os_errors
from skep.core.errors import SettingsError
from skep.core.settings.setting import Value
from skep.core.text import NOTHING, Text
from skep.ports import SettingsStore

KEY: Final = "app.start_at_login"
LIMIT: Final = 64 * 1024
"""Largest file in bytes that is read; ours is under 1 kB."""
ON_WINDOWS: Final = Text("autostart.skep_does_not_start_itself")
_ENTRY: Final = "Desktop Entry"


def command(home: Path | None) -> list[str]:
    """The command to run: the app in the tray, with `home` if that is not the default one."""
    return [*app_command(), "--hidden", *(("--home", str(home)) if home is not None else ())]


def autostart(home: Path, usual: Path, environ: Mapping[str, str], platform: str = sys.platform) -> Autostart:
    """The file of this home: each home has its own; that of the default home has the plain name."""
    other = None if home == usual else home
    tail = "" if other is None else "-" + hashlib.sha256(str(home).encode()).hexdigest()[:8]
    person = Path(environ.get("HOME") or Path.home())
    match platform:
        case "win32":
            return Refused(ON_WINDOWS)
        case "darwin":
            return LaunchAgent(person / "Library" / "LaunchAgents" / f"org.skep.skep{tail}.plist", command(other))
        case _:
            config = Path(environ.get("XDG_CONFIG_HOME") or person / ".config")
            return DesktopEntry(config / "autostart" / f"skep{tail}.desktop", command(other))


class Refused:
    """Start at login is not available; `refused` says why."""

    def __init__(self, why: Text) -> None:
        self.refused = why

    def is_on(self) -> bool:
        return False

    def turn(self, *, on: bool) -> None:
        """Raises SettingsError if `on`."""
        if on:
            raise SettingsError(self.refused)


class LoginFile(ABC):
    """Base class of both kinds of file."""

    refused = NOTHING

    def __init__(self, path: Path, start: Sequence[str]) -> None:
        self.path, self._start = path, start

    def is_on(self) -> bool:
        """Whether the file starts skep now: a portable folder may have been moved. Raises StorageError."""
        raw = self._raw()
        return self.says_on(raw) and _is_there(self.program(raw))

    def turn(self, *, on: bool) -> None:
        """Write or remove the file, unless it has the wanted effect already. Raises StorageError."""
        if on == (self.is_on() if on else self.says_on(self._raw())):
            return
        with self._errors(Text("file.written") if on else Text("file.removed")):
            if on:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(self.path, self.content(), mode=0o644)
            else:
                self.path.unlink(missing_ok=True)

    def _raw(self) -> bytes:
        """Empty without a file. Raises StorageError."""
        with self._errors(Text("file.read")):
            try:
                with self.path.open("rb") as file:
                    return file.read(LIMIT)
            except (FileNotFoundError, NotADirectoryError):
                return b""

    def _errors(self, done: Text) -> AbstractContextManager[None]:
        return os_errors(
            Text("autostart.file_starting_login_cannot", path=str(self.path), done=done),
            Text("ledger.make_file_folder_writable_you"),
        )

    @abstractmethod
    def says_on(self, raw: bytes) -> bool:
        """Whether a file with this content starts a program."""

    @abstractmethod
    def program(self, raw: bytes) -> str:
        """The program that such a file starts; "" if that cannot be told."""

    @abstractmethod
    def content(self) -> bytes:
        """The content that starts skep."""


Autostart = LoginFile | Refused


class _CaseKept(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


class DesktopEntry(LoginFile):
    """Implements Autostart by the XDG autostart specification; a desktop may also switch the entry off in it."""

    def says_on(self, raw: bytes) -> bool:
        entry = self._entry(raw)
        hidden = entry.get("Hidden", "false").strip().lower() == "true"
        enabled = entry.get("X-GNOME-Autostart-enabled", "true").strip().lower() != "false"
        return bool(entry.get("Exec")) and enabled and not hidden

    def program(self, raw: bytes) -> str:
        try:
            words = shlex.split(self._entry(raw).get("Exec", "").replace("\\\\", "\\").replace("%%", "%"))
        except ValueError:
            return ""
        return words[0] if words else ""

    def _entry(self, raw: bytes) -> Mapping[str, str]:
        parser = _CaseKept(strict=False)
        try:
            parser.read_string(raw.decode(errors="replace"))
        except configparser.Error:
            return {}
        return parser[_ENTRY] if parser.has_section(_ENTRY) else {}

    def content(self) -> bytes:
        lines = (
            f"[{_ENTRY}]",
            "Type=Application",
            "Name=skep",
            "Comment=Lend this computer's idle GPU to open model training",
            "Comment[de]=Die freie GPU dieses Computers offenem Modelltraining leihen",
            f"Exec={' '.join(quoted(word) for word in self._start)}",
            "Icon=skep",
            "Terminal=false",
            "X-GNOME-Autostart-enabled=true",
        )
        return ("\n".join(lines) + "\n").encode()


def _is_there(program: str) -> bool:
    """False for a path that leads nowhere."""
    return not Path(program).is_absolute() or Path(program).exists()


def quoted(word: str) -> str:
    """An argument of Exec in double quotes, escaped once for the quotes and once for the string value."""
    escaped = "".join(f"\\{character}" if character in '"`$\\' else character for character in word)
    return '"' + escaped.replace("\\", "\\\\").replace("%", "%%") + '"'


class LaunchAgent(LoginFile):
    """Implements Autostart as launchd.plist(5) has it; its label is the file's name."""

    def says_on(self, raw: bytes) -> bool:
        found = self._agent(raw)
        return found.get("RunAtLoad") is True and found.get("Disabled") is not True

    def program(self, raw: bytes) -> str:
        words = self._agent(raw).get("ProgramArguments")
        return str(words[0]) if isinstance(words, list) and words else ""

    def _agent(self, raw: bytes) -> Mapping[str, Any]:
        try:
            found: Any = plistlib.loads(raw)
        except Exception:  # noqa: BLE001 - a damaged file makes plistlib raise nearly anything
            return {}
        return found if isinstance(found, dict) else {}

    def content(self) -> bytes:
        return plistlib.dumps(
            {
                "Label": self.path.stem,
                "ProgramArguments": list(self._start),
                "RunAtLoad": True,
                "LimitLoadToSessionType": "Aqua",
                "ProcessType": "Interactive",
            }
        )


class SettingsWithAutostart:
    """Implements ports.SettingsStore over another one; app.start_at_login is read from its file and written there."""

    def __init__(self, kept: SettingsStore, start: Autostart) -> None:
        self._kept, self._start = kept, start

    def load(self) -> dict[str, Value]:
        """Raises SettingsError, StorageError."""
        return self._kept.load() | {KEY: self._start.is_on()}

    def save(self, values: dict[str, Value]) -> None:
        """Raises SettingsError, StorageError."""
        if KEY in values:
            self._start.turn(on=values[KEY] is True)
        self._kept.save({key: value for key, value in values.items() if key != KEY})
