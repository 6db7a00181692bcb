"""A copy of an update repository in a folder, a tar or a zip file, for computers without a connection.

Nothing in it is trusted: it is read like the answers of a server, and verified in the same way.
"""

from __future__ import annotations

import contextlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from tuf.api import exceptions as tuf_errors
from tuf.ngclient.fetcher import FetcherInterface

from skep.core.errors import UpdateError
from skep.core.text import Text

ADDRESS: Final = "copy:/"
_FIRST: Final = PurePosixPath("metadata/timestamp.json")
_CHUNK: Final = 1 << 20
_DAMAGED: Final = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError)
_DAMAGED_ARCHIVE: Final = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


class RepositoryCopy(FetcherInterface):
    """The files of a copy by their names in the repository; reads them for python-tuf."""

    def __init__(self, names: set[str], opened: Callable[[str], IO[bytes] | None]) -> None:
        self._names, self._opened = names, opened
        self._top = next((PurePosixPath(name).parents[1] for name in sorted(names) if _is_first(name)), None)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """Raises FileNotFoundError, and what damaged archives raise."""
        stored = str(self._top / name) if self._top is not None else ""
        file = self._opened(stored) if stored in self._names else None
        if file is None:
            raise FileNotFoundError(name)
        with file:
            yield file

    def target(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A file that is published, as `file`."""
        return self.file(f"targets/{name}")

    @property
    def is_one(self) -> bool:
        """Whether there is a repository in it at all."""
        return self._top is not None

    def _fetch(self, url: str) -> Iterator[bytes]:
        name = url.removeprefix(ADDRESS)
        try:
            with self.file(name) as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        except FileNotFoundError:
            raise tuf_errors.DownloadHTTPError(name, 404) from None
        except (*_DAMAGED, *_DAMAGED_ARCHIVE) as error:
            raise tuf_errors.DownloadError(str(error)) from None


@contextlib.contextmanager
def repository_copy(path: Path) -> Iterator[RepositoryCopy]:
    """The copy at `path`, open in the context. Raises UpdateError, also for damage that is found in the context."""
    try:
        with _opened(path) as copy:
            if not copy.is_one:
                raise UpdateError(Text("packs.no_copy", path=str(path)), Text("packs.what_a_copy_is"))
            yield copy
    except (*_DAMAGED, *_DAMAGED_ARCHIVE) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UpdateError(
            Text("packs.copy_unreadable", path=str(path), reason=reason), Text("packs.what_a_copy_is")
        ) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[RepositoryCopy]:
    if path.is_dir():
        names = {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()}
        yield RepositoryCopy(names, lambda name: (path / name).open("rb"))
    elif zipfile.is_zipfile(path) and not tarfile.is_tarfile(path):  # a tar file that ends with a wheel looks like both
        with zipfile.ZipFile(path) as archive:
            yield RepositoryCopy(set(archive.namelist()), archive.open)
    else:
        with tarfile.open(path) as archive:
            # names in tar files often begin with "./"
            members = {PurePosixPath(each.name).as_posix(): each for each in archive if each.isreg()}
            yield RepositoryCopy(set(members), lambda name: archive.extractfile(members[name]))


def _is_first(name: str) -> bool:
    return PurePosixPath(name).parts[-2:] == _FIRST.parts
