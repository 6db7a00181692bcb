"""The folder of fetched wheels: resumable downloads, verified by length and SHA-256.

A verified wheel is named by its hash; an unfinished download ends in `.part` and is continued by the next attempt.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Final

from skep.adapters.net.part_download import Download, receive
from skep.adapters.net.web import TryAgain, Web
from skep.adapters.storage.files import os_errors
from skep.adapters.storage.shard_cache import PartFile
from skep.core.errors import DataError, UpdateError
from skep.core.packs import Wheel
from skep.core.text import Text
from skep.files import sync

Told = Callable[[int], None]
"""Called with the bytes of a wheel that are here."""

_KEPT: Final = Text("packs.what_came_is_kept")


class Wheelhouse:
    """The wheels in `folder`. One process at a time changes it (see `PackStore.changing`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, wheel: Wheel) -> Path:
        """Where the verified wheel is, or will be."""
        return self._folder / f"{wheel.sha256}.whl"

    def has(self, wheel: Wheel) -> bool:
        """Whether the complete wheel is here; its bytes are hashed. A damaged one is deleted. Raises StorageError."""
        path = self.path(wheel)
        with _disk_errors(self._folder):
            if path.is_symlink() or not path.is_file():
                return False
            if path.stat().st_size == wheel.size and _sha256(path) == wheel.sha256:
                return True
            path.unlink()
            return False

    def seems_here(self, wheel: Wheel) -> bool:
        """Whether a file of its name and length is here."""
        try:
            return self.path(wheel).lstat().st_size == wheel.size
        except OSError:
            return False

    def to_come(self, wheel: Wheel) -> int:
        """Bytes of a wheel that is not here that have not been fetched."""
        try:
            return max(0, wheel.size - self._part(wheel).stat().st_size)
        except OSError:
            return wheel.size

    def fetch(self, wheel: Wheel, address: str, web: Web, told: Told = lambda _have: None) -> Path:
        """The verified wheel. What an earlier attempt fetched is continued. Raises UpdateError, StorageError, Stopped."""
        with _disk_errors(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            web.persist(lambda: self._attempt(wheel, address, web, told))
        except DataError as error:
            raise UpdateError(Text("packs.wheel_not_fetched", file=wheel.file, reason=error.title), _KEPT) from None
        return self._keep(wheel)

    def add(self, wheel: Wheel, source: IO[bytes], told: Told = lambda _have: None) -> Path:
        """The wheel from a file, verified while it is copied. Raises UpdateError, StorageError, what `told` raises."""
        with _disk_errors(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with PartFile(self._part(wheel), wheel.size, _disk_errors) as part:
            part.restart()
            while part.have < wheel.size and (chunk := source.read(min(1 << 20, wheel.size - part.have))):
                part.write(chunk)
                told(part.have)
            right = part.sha256 == wheel.sha256 and not source.read(1)
            if not right:
                part.restart()
        if not right:
            raise UpdateError(Text("packs.wheel_wrong", file=wheel.file), Text("packs.tell_publisher"))
        return self._keep(wheel)

    def remove(self, wheel: Wheel) -> None:
        """Delete a wheel that has been laid down."""
        with contextlib.suppress(OSError):
            self.path(wheel).unlink(missing_ok=True)
            self._part(wheel).unlink(missing_ok=True)

    def tidy(self, keep: Collection[str] = ()) -> int:
        """Remove all wheels and partial downloads but those with a hash in `keep`; returns the bytes freed."""
        freed = 0
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.partition(".")[0] not in keep:
                    size = path.lstat().st_size
                    path.unlink()
                    freed += size
        return freed

    # --- how

    def _part(self, wheel: Wheel) -> Path:
        return self._folder / f"{wheel.sha256}.whl.part"

    def _keep(self, wheel: Wheel) -> Path:
        with _disk_errors(self._folder):
            sync(self._part(wheel))  # otherwise a power cut may leave a whole wheel's name with less than its bytes
            self._part(wheel).replace(self.path(wheel))
            sync(self._folder)
        return self.path(wheel)

    def _attempt(self, wheel: Wheel, address: str, web: Web, told: Told) -> None:
        """One attempt to complete the part file and verify it. Raises DataError, TryAgain, StorageError, Stopped."""

        def wrong(kind: type[DataError]) -> DataError:
            return kind(Text("packs.wheel_wrong", file=wheel.file))

        with PartFile(self._part(wheel), wheel.size, _disk_errors) as part:
            resumed = part.have > 0
            if part.have < wheel.size:
                what = Text("packs.wheel", file=wheel.file)
                download = Download(address, what, wheel.size, lambda _: wrong(DataError), told)
                resumed = receive(web, download, part)
            if part.have == wheel.size and part.sha256 == wheel.sha256:
                told(wheel.size)
                return
            part.restart()
        # what an earlier attempt left may be wrong: everything is fetched once more
        raise wrong(TryAgain if resumed else DataError)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _disk_errors(folder: Path) -> contextlib.AbstractContextManager[None]:
    return os_errors(Text("packs.cannot_be_kept", folder=str(folder)), Text("packs.check_folder_and_space"))
