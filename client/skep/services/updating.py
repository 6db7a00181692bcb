"""Updates of skep: checking for a new version, installing it, and going back to the previous one.

The build defines the address of the updates and the key of their signatures (`programs.update_source`); a build without
them does not check for updates. Only the portable folder is updated here; for an installation by the system, skep only
reports a new version. Nothing is installed without the user's request.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

import skep
from skep import bootstrap
from skep.adapters.net.web import Patience, Stop, Stopped, Web
from skep.adapters.process.portable_folder import PortableFolder, portable_folder
from skep.adapters.process.programs import UpdateSource, app_command, has_own_stack, update_source
from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.paths import Home
from skep.core import releases
from skep.core.errors import UpdateError
from skep.core.project.addresses import reach_of
from skep.core.releases import APP_ALONE, Release
from skep.core.text import NOTHING, Text

if TYPE_CHECKING:
    from skep.adapters.net.update_repository import UpdateRepository

NO_SOURCE: Final = Text("update.skep_does_not_know_place")

GoOn = Callable[[int, int], bool]
"""Called with the bytes done and the total. If it returns False, the operation is cancelled without any change."""


@dataclass(frozen=True)
class Found:
    """A newer version; `installs` says whether skep can install it, or the system must."""

    release: Release
    installs: bool


@dataclass(frozen=True)
class LastCheck:
    """The state kept between starts. `declined` is the version that the user went back from; it is not offered."""

    checked: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    declined: str = ""


@dataclass
class Updates:
    """The updates of one home. Calls may be slow. `keep_free` returns how many GB of the disk must stay free."""

    home: Home
    source: UpdateSource | None
    folder: PortableFolder | None
    proxy: Callable[[], str]
    keep_free: Callable[[], float]
    _stop: Stop = field(default_factory=Stop)

    @property
    def lacking(self) -> Text:
        """Why updates are not checked for, "" if they are."""
        return NOTHING if self.source is not None else NO_SOURCE

    @property
    def version(self) -> str:
        """The version that runs after the next start; it differs from this one after an update."""
        return (self.folder.current if self.folder else "") or skep.__version__

    @property
    def previous(self) -> str:
        """The version that `go_back` restores, "" when there is none."""
        return self.folder.previous if self.folder else ""

    def look_when_due(self) -> Found | None:
        """The result of `look`, once a day, without a declined version. Raises UpdateError, StorageError."""
        memory = self._memory()
        if self.source is None or not releases.is_due(memory.checked, datetime.now(UTC)):
            return None
        found = self.look()
        declined = (
            found is not None and memory.declined and not releases.is_newer(found.release.version, memory.declined)
        )
        return None if declined else found

    def look(self) -> Found | None:
        """Check for a newer version; None when there is none, or after `stop`. Raises UpdateError, StorageError."""
        try:
            newest = self._repository().newest(releases.notice_name(*this_edition()))
        except Stopped:
            return None
        self._remember(replace(self._memory(), checked=datetime.now(UTC)))
        if newest is None or not releases.is_newer(newest.version, self.version):
            return None
        return Found(newest, self.folder is not None and not self.folder.refused)

    def install(self, release: Release, fetched: GoOn, unpacked: GoOn) -> bool:
        """Fetch, verify and install a release that `look` found; it runs from the next start on.

        Returns whether it was installed; False when cancelled by `fetched`, `unpacked` or `stop`. Raises UpdateError,
        StorageError; then nothing has changed.
        """
        portable = self._folder()
        if not releases.is_newer(release.version, self.version):
            raise UpdateError(Text("update.skep_not_newer_than", version=release.version, version_2=self.version))
        try:
            archive = self._repository().fetch(release, self._ending(fetched))
            keep_free = int(self.keep_free() * bootstrap.GB)
            portable.install(archive, release.version, release.unpacked, keep_free, self._ending(unpacked))
        except Stopped:
            return False
        with contextlib.suppress(OSError):
            archive.unlink()
        return True

    def _ending(self, go_on: GoOn) -> Callable[[int, int], None]:
        def told(came: int, of: int) -> None:
            self._stop.check()
            if not go_on(came, of):
                raise Stopped

        return told

    def go_back(self) -> str:
        """Restore the previous version from the next start on; returns it. Raises UpdateError, StorageError."""
        left = self.version
        version = self._folder().go_back()
        self._remember(replace(self._memory(), declined=left))
        return version

    def start_command(self) -> Sequence[str]:
        """The command that starts the installed version of the app in this home."""
        return [*app_command(), "--home", str(self.home.root)]

    def tidy(self) -> None:
        """Remove leftover files of earlier updates."""
        if self.folder is not None:
            self.folder.tidy()
        for archive in self.home.updates_folder.glob("skep-*.tar.xz"):
            with contextlib.suppress(OSError):
                archive.unlink()

    def stop(self) -> None:
        """Cancel running operations in all threads; later ones do not start."""
        self._stop.set()

    # --- implementation

    def _folder(self) -> PortableFolder:
        """Raises UpdateError."""
        if self.folder is None:
            raise UpdateError(
                Text("update.skep_was_not_unpacked_from"),
                Text("update.install_new_version_way_one"),
            )
        if self.folder.refused:
            raise UpdateError(self.folder.refused, Text("update.start_skep_user_who_unpacked"))
        return self.folder

    def _repository(self) -> UpdateRepository:
        if self.source is None:
            raise UpdateError(NO_SOURCE)
        from skep.adapters.net.update_repository import UpdateRepository  # noqa: PLC0415 - needed once a day

        self.home.create()
        web = Web(Patience(), self._stop, reach_of(self.source.address), self.proxy)
        return UpdateRepository(self.home.updates_folder, self.source.address, self.source.root, web)

    @property
    def _memory_file(self) -> Path:
        return self.home.updates_folder / "memory.json"

    def _memory(self) -> LastCheck:
        """The saved state; the default if it cannot be read, which only causes one more check."""
        try:
            return msgspec.json.decode(self._memory_file.read_bytes(), type=LastCheck)
        except (OSError, ValueError, RecursionError):  # also what msgspec raises
            return LastCheck()

    def _remember(self, memory: LastCheck) -> None:
        with os_errors(Text("update.cannot_written", memory_file=str(self._memory_file))):
            self.home.updates_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self._memory_file, msgspec.json.encode(memory))


def updates(home: Home) -> Updates:
    """The updates of the running skep; settings are read at each check."""
    return Updates(
        home,
        source=update_source(),
        folder=portable_folder(),
        proxy=lambda: str(bootstrap.settings(home).load()["network.proxy"]),
        keep_free=lambda: float(bootstrap.settings(home).load()["disk.keep_free_gb"]),
    )


def this_kind() -> tuple[str, str]:
    """System and machine, as in the names of lists and archives."""
    return platform.system().lower(), platform.machine().lower()


def this_edition() -> tuple[str, str]:
    """As `this_kind`, for archives: the app without a training stack has its own."""
    system, machine = this_kind()
    return system if has_own_stack() else APP_ALONE + system, machine
