"""Updates of skep itself: whether and where to look, what was found, installing it, going back.

Whoever built this skep says where its updates lie and whose signature counts (`programs.update_source`); a skep without
that looks nowhere. The portable folder is updated here; what the system installed, the system updates, and skep only
tells. It must not decide by itself to install anything.
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
from skep.adapters.process.programs import UpdateSource, app_command, update_source
from skep.adapters.storage.files import atomic_write
from skep.adapters.storage.paths import Home
from skep.core import releases
from skep.core.errors import StorageError, UpdateError
from skep.core.releases import Release
from skep.core.text import NOTHING, Text

if TYPE_CHECKING:
    from skep.adapters.net.update_repository import UpdateRepository

NOBODY: Final = Text("update.skep_does_not_know_place")

GoOn = Callable[[int, int], bool]
"""Hears how many bytes of how many are there. Its False ends everything, and nothing has changed."""


@dataclass(frozen=True)
class Found:
    """A newer skep; `installs` says whether it can be installed from here, or the system does that."""

    release: Release
    installs: bool


@dataclass(frozen=True)
class Memory:
    """What is kept between starts. `declined` is the version that somebody went back from: it is not offered again."""

    checked: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    declined: str = ""


@dataclass
class Updates:
    """For one home. Everything here takes its time. `keep_free` says how many GB of the disk stay free."""

    home: Home
    source: UpdateSource | None
    folder: PortableFolder | None
    proxy: Callable[[], str]
    keep_free: Callable[[], float]
    _stop: Stop = field(default_factory=Stop)

    @property
    def lacking(self) -> Text:
        """Why nothing is looked for, "" where it is."""
        return NOTHING if self.source is not None else NOBODY

    @property
    def version(self) -> str:
        """The version that starts next: after an update another one than this."""
        return (self.folder.current if self.folder else "") or skep.__version__

    @property
    def previous(self) -> str:
        """The version that can be gone back to, "" when there is none."""
        return self.folder.previous if self.folder else ""

    def look_when_due(self) -> Found | None:
        """What `look` finds, once a day, and only what nobody went back from. Raises UpdateError, StorageError."""
        memory = self._memory()
        if self.source is None or not releases.is_due(memory.checked, datetime.now(UTC)):
            return None
        found = self.look()
        declined = (
            found is not None and memory.declined and not releases.is_newer(found.release.version, memory.declined)
        )
        return None if declined else found

    def look(self) -> Found | None:
        """Ask for the newest skep; None when this is it, or when it was stopped. Raises UpdateError, StorageError."""
        try:
            newest = self._repository().newest(releases.notice_name(*this_kind()))
        except Stopped:
            return None
        self._remember(replace(self._memory(), checked=datetime.now(UTC)))
        if newest is None or not releases.is_newer(newest.version, self.version):
            return None
        return Found(newest, self.folder is not None and not self.folder.refused)

    def install(self, release: Release, fetched: GoOn, unpacked: GoOn) -> bool:
        """Fetch, verify and install a release that `look` found; it is skep from the next start.

        Returns whether it was done; False when it was ended by `fetched`, `unpacked` or `stop`. Raises UpdateError,
        StorageError; then skep is what it was.
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
        """Let the previous version be skep again from the next start; returns it. Raises UpdateError, StorageError."""
        left = self.version
        version = self._folder().go_back()
        self._remember(replace(self._memory(), declined=left))
        return version

    def start_command(self) -> Sequence[str]:
        """What starts the app in this home, in the version that is installed now."""
        return [*app_command(), "--home", str(self.home.root)]

    def tidy(self) -> None:
        """Remove what earlier updates left behind."""
        if self.folder is not None:
            self.folder.tidy()
        for archive in self.home.updates_folder.glob("skep-*.tar.xz"):
            with contextlib.suppress(OSError):
                archive.unlink()

    def stop(self) -> None:
        """End what is under way in any thread; nothing is begun afterwards."""
        self._stop.set()

    # --- how

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
            raise UpdateError(NOBODY)
        from skep.adapters.net.update_repository import UpdateRepository  # noqa: PLC0415 - needed once a day

        self.home.create()
        web = Web(Patience(), self._stop, self.proxy)
        return UpdateRepository(self.home.updates_folder, self.source.address, self.source.root, web)

    @property
    def _memory_file(self) -> Path:
        return self.home.updates_folder / "memory.json"

    def _memory(self) -> Memory:
        """Nothing is lost when it cannot be read: it is looked once more."""
        try:
            return msgspec.json.decode(self._memory_file.read_bytes(), type=Memory)
        except (OSError, msgspec.MsgspecError):
            return Memory()

    def _remember(self, memory: Memory) -> None:
        try:
            self.home.updates_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self._memory_file, msgspec.json.encode(memory))
        except OSError as error:
            raise StorageError(
                Text("update.cannot_written", memory_file=str(self._memory_file), reason=str(error.strerror or error))
            ) from None


def updates(home: Home) -> Updates:
    """Of the skep that runs, as the settings are at each look."""
    return Updates(
        home,
        source=update_source(),
        folder=portable_folder(),
        proxy=lambda: str(bootstrap.settings(home).load()["network.proxy"]),
        keep_free=lambda: float(bootstrap.settings(home).load()["disk.keep_free_gb"]),
    )


def this_kind() -> tuple[str, str]:
    """System and machine, as the archives' names have them."""
    return platform.system().lower(), platform.machine().lower()
