"""A TUF repository of skep's releases, read by python-tuf and verified from skep's root of trust.

Verified metadata is kept in a private folder, so that a later rollback by the server is detected.

Protocol: The Update Framework, specification 1.0.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from tuf.api import exceptions as tuf_errors
from tuf.ngclient.config import UpdaterConfig
from tuf.ngclient.fetcher import FetcherInterface
from tuf.ngclient.updater import Updater

from skep.adapters.net.repository_copy import RepositoryCopy
from skep.adapters.net.web import NotThere, Stopped, Web
from skep.adapters.storage.files import os_errors
from skep.core.errors import DataError, UpdateError
from skep.core.packs import LIST_LIMIT, PackList, Wheel, read_packs, wheel_target
from skep.core.releases import NOTICE_LIMIT, TRY_LATER, Release, read_notice
from skep.core.text import Text

METADATA: Final = "metadata/"
TARGETS: Final = "targets/"

Told = Callable[[int, int], None]
"""Called with the bytes received and the total."""


class UpdateRepository:
    """One repository at `address`; `root` is the signed list of keys that skep came with.

    `source` is how its files are read: from a web server, or from a copy in a file. `hint` is the last sentence of every
    error: what happens next, or what can be done.
    """

    def __init__(
        self, folder: Path, address: str, root: bytes, source: Web | RepositoryCopy, hint: Text = TRY_LATER
    ) -> None:
        self._folder, self._address, self._root = folder, address.rstrip("/") + "/", root
        self._hint = hint
        self._fetcher = _Fetcher(source, folder) if isinstance(source, Web) else source

    def newest(self, notice: str) -> Release | None:
        """The release in the notice of that name; None if the repository has none for this kind of computer.

        Raises UpdateError, Stopped.
        """
        with self._in_words():
            updater = self._updater()
            found = updater.get_targetinfo(notice)
            if found is None:
                return None
            if found.length > NOTICE_LIMIT:
                raise UpdateError(Text("update.description_too_long"), self._hint)
            return read_notice(Path(updater.download_target(found, str(self._folder / "notice.json"))).read_bytes())

    def fetch(self, release: Release, told: Told = lambda _came, _of: None) -> Path:
        """The verified archive of a release, in our folder; an existing one is not fetched again.

        Raises UpdateError, Stopped.
        """
        with self._in_words():
            updater = self._updater()
            found = updater.get_targetinfo(release.archive)
            if found is None:
                raise UpdateError(Text("update.update_server_does_not_have", version=release.version), self._hint)
            place = self._folder / release.archive
            if updater.find_cached_target(found, str(place)) is None:
                self._hear(lambda came: told(came, found.length))
                updater.download_target(found, str(place))
            return place

    def packs(self, name: str) -> PackList | None:
        """The list of compute packs of that name; None if the repository has none for this kind of computer.

        The repository vouches for each of its wheels by itself too, so that a list that was signed by mistake names
        nothing that is not published. Raises UpdateError, Stopped.
        """
        with self._in_words():
            updater = self._updater()
            found = updater.get_targetinfo(name)
            if found is None:
                return None
            if found.length > LIST_LIMIT:
                raise UpdateError(Text("packs.list_too_long"), self._hint)
            kept = self._folder / "packs.json"
            known = read_packs(Path(updater.download_target(found, str(kept))).read_bytes())
            for wheel in {wheel for pack in known.packs for wheel in pack.wheels}:
                vouched = updater.get_targetinfo(wheel_target(wheel))
                if vouched is None or (vouched.length, vouched.hashes.get("sha256")) != (wheel.size, wheel.sha256):
                    raise UpdateError(Text("packs.wheel_not_vouched_for", file=wheel.file), self._hint)
            return known

    def wheel_address(self, wheel: Wheel) -> str:
        return self._address + TARGETS + wheel_target(wheel)

    def _hear(self, heard: Callable[[int], None]) -> None:
        if isinstance(self._fetcher, _Fetcher):
            self._fetcher.heard = heard

    def _updater(self) -> Updater:
        """With everything about the newest list fetched and verified."""
        self._hear(_unheard)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        updater = Updater(
            metadata_dir=str(self._folder / "metadata"),
            metadata_base_url=self._address + METADATA,
            target_dir=str(self._folder),
            target_base_url=self._address + TARGETS,
            fetcher=self._fetcher,
            config=UpdaterConfig(prefix_targets_with_hash=False),
            bootstrap=self._root,
        )
        updater.refresh()
        return updater

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            with os_errors(Text("update.update_cannot_kept", folder=str(self._folder)), kind=UpdateError):
                yield
        except tuf_errors.ExpiredMetadataError:
            raise UpdateError(
                Text("update.what_update_server_offers_out"),
                Text("update.if_computer_clock_right_will", try_later=self._hint),
            ) from None
        except (tuf_errors.RepositoryError, tuf_errors.DownloadLengthMismatchError):
            raise UpdateError(Text("update.what_update_server_offers_not"), self._hint) from None
        except tuf_errors.DownloadError as error:
            if isinstance(error.__cause__, Stopped):
                raise error.__cause__ from None
            raise UpdateError(Text("update.update_server_cannot_reached_does"), self._hint) from None


class _Fetcher(FetcherInterface):
    """Downloads under our rules for the web, with temporary files in our own folder, since /tmp may lie in memory."""

    def __init__(self, web: Web, folder: Path) -> None:
        self._web, self._folder = web, folder
        self.heard: Callable[[int], None] = _unheard
        """Called with the bytes received of a file."""

    def _fetch(self, url: str) -> Iterator[bytes]:
        try:
            with self._web.get(url, Text("update.update")) as answer:
                yield from answer.chunks()
        except NotThere as error:
            raise tuf_errors.DownloadHTTPError(str(error.title), error.status) from error
        except (DataError, Stopped) as error:
            raise tuf_errors.DownloadError(str(error)) from error

    @contextlib.contextmanager
    def download_file(self, url: str, max_length: int) -> Iterator[IO[bytes]]:
        came = 0
        with tempfile.TemporaryFile(dir=self._folder) as kept:
            for chunk in self.fetch(url):
                came += len(chunk)
                if came > max_length:
                    raise tuf_errors.DownloadLengthMismatchError(f"more than {max_length} bytes")
                kept.write(chunk)
                self.heard(came)
            kept.seek(0)
            yield kept


def _unheard(_came: int) -> None:
    pass
