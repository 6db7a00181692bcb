"""The folder of compute packs: what is laid down, which of it is used, and going back.

::

    packs/
    ├── fetched/                     verified wheels and partial downloads (see `wheelhouse`)
    ├── laid/cpu-0123456789ab/, …    each a site-packages folder with its record (see `laying`)
    ├── current -> laid/cpu-…        the one that goes on sys.path
    ├── previous -> laid/…           for going back
    └── next -> laid/…               laid down, and not used before its trial has ended well

A pack is laid down beside the others and then renamed; the one in use is changed by renaming a link. Both are atomic, so
that after an interruption at any point every pack is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from filelock import Timeout

from skep.adapters.packs import laying
from skep.adapters.packs.laying import RECORD, LaidWheel, Laying
from skep.adapters.process.single_instance import file_lock
from skep.adapters.storage.files import (
    DYING_PREFIX,
    LINK_PREFIX,
    atomic_write,
    os_errors,
    point,
    remove_folder,
    set_aside,
)
from skep.core.errors import StorageError, UpdateError
from skep.core.packs import Pack, Wheel
from skep.core.text import Text
from skep.files import sync

CURRENT: Final = "current"
PREVIOUS: Final = "previous"
NEXT: Final = "next"
DISPLACED: Final = "displaced"
_LINKS: Final = (CURRENT, PREVIOUS, NEXT, DISPLACED)
_INCOMING: Final = ".incoming-"
_LOCK: Final = ".lock"
_DIGITS: Final = 12
_GB: Final = 1e9

Told = Callable[[int, int], None]
"""Called with the bytes done and the total; an exception from it ends the operation without any change."""


def _unheard(_done: int, _total: int) -> None:
    pass


@dataclass(frozen=True)
class Source:
    """A laid folder that has the intact files of a wheel."""

    folder: Path
    wheel: LaidWheel


class PackStore:
    """The packs in `root`, which need not exist. Reading is possible at any time, changes are made under `changing`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._laid = root / "laid"

    @property
    def fetched_folder(self) -> Path:
        return self.root / "fetched"

    @property
    def current(self) -> Path | None:
        """The folder to put on sys.path. It is not the link, so that a process stays with the pack it began with."""
        return self._named_by(CURRENT)

    @property
    def previous(self) -> Path | None:
        """The folder that `go_back` restores."""
        previous = self._named_by(PREVIOUS)
        return previous if previous != self.current else None

    @property
    def displaced(self) -> Path | None:
        """The folder for which the current one stands in, since it could not be used."""
        return self._named_by(DISPLACED)

    def place(self, pack: Pack) -> Path:
        """Where the pack is, or will be."""
        return self._laid / f"{pack.name}-{pack.digest[:_DIGITS]}"

    def laid(self) -> list[Path]:
        """The folders of all packs, by name."""
        try:
            return sorted(path for path in self._laid.iterdir() if not path.name.startswith("."))
        except OSError:
            return []

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """A context in which no other process changes the packs. Raises UpdateError, StorageError."""
        with self._errors():
            for folder in (self.root, self._laid):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = file_lock(self.root / _LOCK)
        try:
            lock.acquire()
        except Timeout:
            raise UpdateError(Text("packs.changed_already"), Text("update.wait_until_done")) from None
        except OSError as error:
            raise StorageError(
                Text("packs.cannot_be_kept", folder=str(self.root), reason=str(error.strerror or error)),
                Text("packs.check_folder_and_space"),
            ) from None
        with lock:
            yield

    def check_room(self, needed: int, keep_free: int) -> None:
        """Raises StorageError unless the disk has `needed` bytes and `keep_free` more."""
        with self._errors():
            free = shutil.disk_usage(self.root).free
        if free < needed + keep_free:
            raise StorageError(
                Text(
                    "packs.not_enough_room",
                    root=str(self.root),
                    needed=needed / _GB,
                    kept=keep_free / _GB,
                    free=free / _GB,
                ),
                Text("update.make_room_lower_setting", setting="disk.keep_free_gb"),
                remedy="setting:disk.keep_free_gb",
            )

    def is_whole(self, pack: Pack, *, hashed: bool = True) -> bool:
        """Whether the pack is laid down with every file as it was; `hashed` is as in `laying.damaged`."""
        folder = self.place(pack)
        return folder in self.laid() and not self.damaged(folder, hashed=hashed)

    def damaged(self, folder: Path, told: Told = _unheard, *, hashed: bool = True) -> list[str]:
        """Paths of the files of a pack that are missing or changed. Raises what `told` raises."""
        record = laying.read_record(folder)
        if record is None:
            return [RECORD]
        total = sum(file.size for wheel in record.wheels.values() for file in wheel.files.values())
        done = 0
        found: list[str] = []
        for wheel in record.wheels.values():
            found += laying.damaged(wheel, folder, _after(told, done, total), hashed=hashed)
            done += sum(file.size for file in wheel.files.values())
        return found

    def sources(self, pack: Pack, *, hashed: bool = True) -> Mapping[str, Source]:
        """By SHA-256, the pack's wheels whose files need not be fetched, since a laid folder has them intact."""
        found: dict[str, Source] = {}
        # an interruption may have left a pack that was about to be replaced
        for folder in (*self.laid(), *sorted(self._laid.glob(f"{DYING_PREFIX}[!.]*"))):
            record = laying.read_record(folder)
            for wheel in pack.wheels if record else ():
                laid = record.wheels.get(wheel.sha256) if record else None
                if laid is None or wheel.sha256 in found or not laid.serves(pack):
                    continue
                if not any(laying.damaged(laid, folder, hashed=hashed)):
                    found[wheel.sha256] = Source(folder, laid)
        return found

    def lay(
        self, pack: Pack, sources: Mapping[str, Source], wheel_path: Callable[[Wheel], Path], told: Told = _unheard
    ) -> Path:
        """Lay down a pack: the wheels of `sources` by links, the others from their verified archives.

        Returns its folder. Raises UpdateError, StorageError, and what `told` raises; then nothing has changed.
        """
        place = self.place(pack)
        incoming = self._laid / f"{_INCOMING}{place.name}"
        try:
            with self._errors():
                remove_folder(incoming)
                incoming.mkdir(mode=0o700)
                self._fill(incoming, pack, sources, wheel_path, told)
                os.sync()  # else a power cut may leave empty files in a folder with a pack's name
                dying = set_aside(place)
                incoming.rename(place)
                sync(self._laid)
                remove_folder(dying)
        finally:
            with contextlib.suppress(OSError):
                remove_folder(incoming)
        return place

    def keep_until_used(self, folder: Path) -> None:
        """Keep a laid folder, instead of the one that was kept so before, until a pack is used. Raises StorageError."""
        with self._errors():
            self._point(NEXT, folder)

    def keep_no_longer(self) -> None:
        """Keep no folder that is not used. Raises StorageError."""
        with self._errors():
            (self.root / NEXT).unlink(missing_ok=True)

    def use(self, folder: Path, *, stands_in: bool = False) -> None:
        """Make a laid folder the current one; with `stands_in`, until the one before can be used again. Raises StorageError."""
        with self._errors():
            if not stands_in:
                (self.root / DISPLACED).unlink(missing_ok=True)
            elif self.displaced is None and self.current is not None:
                self._point(DISPLACED, self.current)
            if self.current is not None and self.current != folder:
                self._point(PREVIOUS, self.current)
            self._point(CURRENT, folder)
        self.keep_no_longer()

    def go_back(self) -> Path:
        """Make the previous folder the current one; returns it. Raises UpdateError, StorageError."""
        to = self.previous
        if to is None:
            raise UpdateError(Text("packs.no_previous"))
        self.use(to)
        return to

    def remove(self, folder: Path) -> None:
        """Remove the folder of a pack, also the current one. Raises StorageError."""
        with self._errors():
            for link in _LINKS:
                if self._named_by(link) == folder:
                    (self.root / link).unlink(missing_ok=True)
            remove_folder(folder)

    def tidy(self) -> None:
        """Remove what an interruption left, and packs that no link leads to and no process computes with.

        A pack that was about to be replaced is put back: its intact files need not be fetched again.
        """
        with contextlib.suppress(OSError):
            for link in _LINKS:
                self._put_back(link)
            needed = {*map(self._named_by, _LINKS), *self.in_use()}
            for path in self._laid.iterdir():
                if path not in needed:
                    remove_folder(path)
            for path in self.root.glob(f"{LINK_PREFIX}*"):
                path.unlink()

    def in_use(self) -> set[Path]:
        """Folders that a process computes with: each such process has its folder's path as an argument."""
        folders = {str(folder): folder for folder in self.laid()}
        used: set[Path] = set()
        for process in psutil.process_iter(["cmdline"]) if folders else ():
            used |= {folders[word] for word in process.info["cmdline"] or () if word in folders}
        return used

    def size(self, folder: Path) -> int:
        """Bytes of the files of a pack, each counted once even where another pack has it too."""
        record = laying.read_record(folder)
        return sum(file.size for wheel in record.wheels.values() for file in wheel.files.values()) if record else 0

    def alone(self, folder: Path) -> int:
        """Bytes that its removal frees: those of the files that no other pack here has too."""
        with contextlib.suppress(OSError):
            facts = [path.lstat() for path in folder.rglob("*") if not path.is_dir()]
            return sum(fact.st_size for fact in facts if fact.st_nlink == 1)
        return 0

    def bytes(self, below: Path | None = None) -> int:
        """Bytes of everything here, or in one folder, each file counted once."""
        sizes = {}
        with contextlib.suppress(OSError):
            for path in (below or self.root).rglob("*"):
                fact = path.lstat()
                if stat.S_ISREG(fact.st_mode):
                    sizes[fact.st_ino] = fact.st_size
        return sum(sizes.values())

    # --- how

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return os_errors(Text("packs.cannot_be_kept", folder=str(self.root)), Text("packs.check_folder_and_space"))

    def _named_by(self, link: str) -> Path | None:
        try:
            folder = self._laid / (self.root / link).readlink().name
        except OSError:
            return None
        return folder if folder.is_dir() and not folder.name.startswith(".") else None

    def _put_back(self, link: str) -> None:
        """Raises OSError."""
        if not (self.root / link).is_symlink():
            return
        place = self._laid / (self.root / link).readlink().name
        dying = self._laid / f"{DYING_PREFIX}{place.name}"
        if dying.is_dir() and not place.exists():
            dying.rename(place)

    def _point(self, link: str, folder: Path) -> None:
        point(self.root / link, str(folder.relative_to(self.root)))

    def _fill(
        self,
        folder: Path,
        pack: Pack,
        sources: Mapping[str, Source],
        wheel_path: Callable[[Wheel], Path],
        told: Told,
    ) -> None:
        """Raises UpdateError, OSError, and what `told` raises."""
        laid = Laying(pack, folder)
        done = 0
        for wheel in pack.wheels:
            heard = _after(told, done, pack.unpacked)
            if source := sources.get(wheel.sha256):
                laid.link(wheel, source.wheel, source.folder, heard)
            else:
                laid.unpack(wheel, wheel_path(wheel), heard)
            done += wheel.unpacked
        atomic_write(folder / RECORD, laid.record())
        told(pack.unpacked, pack.unpacked)


def _after(told: Told, done: int, total: int) -> Callable[[int], None]:
    return lambda written: told(done + written, total)
