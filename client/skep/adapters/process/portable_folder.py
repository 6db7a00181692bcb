"""The folder of the portable skep: installed versions, and a link to the one that starts.

::

    skep.AppDir/
    ├── AppRun, skep, usr, …      links through `current`
    ├── current -> versions/1.1.0
    ├── previous -> versions/1.0.0     for going back
    └── versions/1.0.0, 1.1.0

The version is changed by renaming a link, which is atomic, so that skep starts after an interruption at any point. A
running version continues from its own folder. The caller chooses the version and has verified the archive.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from filelock import Timeout

from skep.adapters.process.programs import CURRENT, PROGRAM, START, VERSIONS, portable_version
from skep.adapters.process.single_instance import file_lock
from skep.adapters.storage.files import LINK_PREFIX, os_errors, point, remove_folder
from skep.core.errors import StorageError, UpdateError
from skep.core.releases import is_version
from skep.core.text import NOTHING, Text

if TYPE_CHECKING:
    import tarfile

APP_DIR: Final = "skep.AppDir"
PREVIOUS: Final = "previous"
_INCOMING: Final = ".incoming"
_LOCK: Final = ".lock"
_START_SECONDS: Final = 60.0
"""How long a new version may take to print its version, before it counts as not working here."""

Told = Callable[[int, int], None]


def portable_folder() -> PortableFolder | None:
    """The folder that this skep runs from; None if it was installed in another way."""
    version = portable_version()
    return PortableFolder(version.parents[1], version.name) if version else None


class PortableFolder:
    """`running` is the version of this process, which need not be the one that starts next."""

    def __init__(self, root: Path, running: str) -> None:
        self.root, self.running = root, running
        self._versions = root / VERSIONS

    @property
    def current(self) -> str:
        """The version that starts next."""
        return self._named_by(CURRENT)

    @property
    def previous(self) -> str:
        """The version that `go_back` restores, "" if there is none."""
        name = self._named_by(PREVIOUS)
        return name if name != self.current and (self._versions / name / PROGRAM).exists() else ""

    @property
    def refused(self) -> Text:
        """Why nothing can be installed here, "" if it can."""
        ours = os.access in os.supports_effective_ids
        if all(os.access(folder, os.W_OK, effective_ids=ours) for folder in (self.root, self._versions)):
            return NOTHING
        return Text("update.you_may_not_change_where", root=str(self.root))

    def install(self, archive: Path, version: str, unpacked: int, keep_free: int, told: Told = lambda *_: None) -> None:
        """Unpack a verified archive of `unpacked` bytes beside this version, test it, and make it the one that starts.

        `keep_free` bytes of the disk stay free. `told` is called with the bytes unpacked and the total; an exception
        from it ends the installation without any change. Raises UpdateError, StorageError.
        """
        with self._alone():
            self._check_room(unpacked + keep_free)
            incoming = self._versions / _INCOMING
            remove_folder(incoming)
            said = os_errors(
                Text("update.skep_cannot_unpacked_into", version=version, root=str(self.root)),
                Text("update.skep_stays"),
            )
            try:
                with said:
                    incoming.mkdir()
                    _unpack(archive, version, incoming, unpacked, lambda came: told(came, unpacked))
                    _try_out(incoming, version)
                    os.sync()  # so that after a power cut the link does not point at empty files
                    remove_folder(self._versions / version)
                    incoming.rename(self._versions / version)
                    self._point(PREVIOUS, self.current)
                    self._point(CURRENT, version)
            finally:
                with contextlib.suppress(OSError):
                    remove_folder(incoming)

    def go_back(self) -> str:
        """Make the previous version the one that starts; returns it. Raises UpdateError, StorageError."""
        with self._alone():
            to, was = self.previous, self.current
            if not to:
                raise UpdateError(Text("update.there_no_earlier_version_skep"))
            with os_errors(Text("update.skep_cannot_changed", root=str(self.root)), Text("update.skep_stays")):
                self._point(CURRENT, to)
                self._point(PREVIOUS, was)
            return to

    def tidy(self) -> None:
        """Remove leftovers of an interrupted update and versions no longer needed. May be called repeatedly."""
        needed = {self.current, self.previous, self.running, _LOCK}
        with contextlib.suppress(OSError, UpdateError), self._alone():
            for path in self._versions.iterdir():
                if path.name not in needed:
                    remove_folder(path)
            for path in self.root.glob(f"{LINK_PREFIX}*"):
                path.unlink()

    # --- how

    def _named_by(self, link: str) -> str:
        try:
            name = (self.root / link).readlink().name
        except OSError:
            return ""
        return name if is_version(name) else ""

    def _point(self, link: str, version: str) -> None:
        if version:
            point(self.root / link, f"{VERSIONS}/{version}")

    def _check_room(self, needed: int) -> None:
        with os_errors(Text("update.disk_cannot_looked", root=str(self.root))):
            free = shutil.disk_usage(self.root).free
        if free < needed:
            raise StorageError(
                Text(
                    "update.there_not_enough_room_update",
                    needed=needed / 1000000000.0,
                    root=str(self.root),
                    free=free / 1000000000.0,
                ),
                Text("update.make_room_lower_setting", setting="disk.keep_free_gb"),
            )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Raises UpdateError while another skep changes the folder, and if the folder is not writable."""
        try:
            held = file_lock(self._versions / _LOCK).acquire()
        except Timeout:
            raise UpdateError(Text("update.skep_being_updated_already"), Text("update.wait_until_done")) from None
        except OSError:
            raise UpdateError(
                self.refused or Text("update.nothing_can_written", versions=str(self._versions))
            ) from None
        with held:
            yield


def _unpack(archive: Path, version: str, into: Path, most: int, told: Callable[[int], None]) -> None:
    """Unpack the folder of the version, `most` bytes in all. Raises UpdateError, OSError, and what `told` raises."""
    import tarfile  # noqa: PLC0415 - the app has this module from its start, and an archive perhaps once a month

    top = PurePosixPath(APP_DIR, VERSIONS, version)
    came = 0
    try:
        with tarfile.open(archive, "r:xz") as opened:
            opened.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
            for member in opened:
                path = PurePosixPath(member.name)
                if not path.is_relative_to(top) or path == top:
                    continue
                _check(member, path.relative_to(top))
                member.name = str(path.relative_to(top))
                if member.isreg() and came + member.size > most:
                    raise UpdateError(
                        Text("update.archive_larger_than_stated", version=version), Text("update.skep_stays")
                    )
                opened.extract(member, into, set_attrs=False)
                if member.isreg():
                    (into / member.name).chmod(0o755 if member.mode & 0o100 else 0o644)
                    came += member.size
                    told(came)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UpdateError(
            Text("update.archive_skep_damaged", version=version, reason=str(error)),
            Text("update.skep_stays"),
        ) from None


def _check(member: tarfile.TarInfo, below: PurePosixPath) -> None:
    """Raises UpdateError for a member that skep's archives never contain, or that would be outside of the folder."""
    inside = ".." not in below.parts and not below.is_absolute()
    if member.issym():
        target = os.path.normpath(below.parent / member.linkname)
        inside = inside and not member.linkname.startswith("/") and not target.startswith("..")
    if not inside or not (member.isreg() or member.isdir() or member.issym()):
        raise UpdateError(Text("update.update_archive_holds_something_skep"))


def _try_out(folder: Path, version: str) -> None:
    """Check that the program in `folder` starts on this computer and has the version. Raises UpdateError."""
    try:
        done = subprocess.run(
            [folder / PROGRAM, "--version"], capture_output=True, text=True, timeout=_START_SECONDS, check=False
        )
        said = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    if said != f"skep {version}" or not (folder / START).exists():
        raise UpdateError(Text("update.skep_does_not_start_computer", version=version))
