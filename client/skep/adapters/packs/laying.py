"""Unpacking verified wheels into a folder that goes on sys.path, and the record of what was laid down.

A wheel is a ZIP file whose members are relative to site-packages; those in `NAME.data/purelib` and `platlib` are too, and
other members of `NAME.data` are not laid down (Binary distribution format, packaging.python.org). The record has the
SHA-256 of every file, so that files can be checked later, and linked into a pack with the same wheel.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final

import msgspec

from skep.core.errors import UpdateError
from skep.core.packs import Pack, Wheel
from skep.core.text import Text

RECORD: Final = "skep-pack.json"
"""The record's name in the folder of a pack."""
_CHUNK: Final = 1 << 20
_INTO_SITE_PACKAGES: Final = ("purelib", "platlib")

Told = Callable[[int], None]
"""Called with the bytes written so far."""


class LaidFile(msgspec.Struct, frozen=True, array_like=True):
    """One file that was laid down."""

    sha256: str
    size: int


class LaidWheel(msgspec.Struct, frozen=True):
    """What was laid down of a wheel, by path, and the paths that were not."""

    files: Mapping[str, LaidFile]
    left: tuple[str, ...]

    def serves(self, pack: Pack) -> bool:
        """Whether every file of the wheel that a pack wants is here."""
        return not any(pack.is_laid(path) for path in self.left)


class Record(msgspec.Struct, frozen=True):
    """A pack as it was laid down: its wheels by SHA-256."""

    pack: Pack
    wheels: Mapping[str, LaidWheel]


def read_record(folder: Path) -> Record | None:
    """The record in the folder of a pack; None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=Record)
    except (OSError, ValueError, RecursionError):  # also what msgspec raises
        return None


class Laying:
    """A pack that is being laid down in an empty folder, wheel by wheel.

    A path that two wheels have is laid down from the first of them.
    """

    def __init__(self, pack: Pack, folder: Path) -> None:
        self._pack, self._folder = pack, folder
        self._files: dict[str, LaidFile] = {}
        self._wheels: dict[str, LaidWheel] = {}

    def unpack(self, wheel: Wheel, archive: Path, told: Told) -> None:
        """Lay down a verified wheel.

        Raises UpdateError for an archive that no wheel of a pack is, OSError, and what `told` raises.
        """
        files: dict[str, LaidFile] = {}
        left = []
        written = 0
        try:
            with zipfile.ZipFile(archive) as opened:
                for member, path in _members(wheel, opened):
                    if not self._pack.is_laid(path):
                        left.append(path)
                        continue
                    place = None if path in self._files else self._folder / path
                    file = _extract(wheel, opened, member, place, wheel.unpacked - written)
                    if self._files.get(path, file) == file:
                        files[path] = file
                    else:
                        left.append(path)
                    written += file.size
                    told(written)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise UpdateError(Text("packs.wheel_damaged", file=wheel.file, reason=str(error))) from None
        self._note(wheel, files, left)

    def link(self, wheel: Wheel, laid: LaidWheel, source: Path, told: Told) -> None:
        """Lay down a wheel as links to its files in the folder `source`. Raises OSError, and what `told` raises."""
        files: dict[str, LaidFile] = {}
        left = list(laid.left)
        written = 0
        for path, file in laid.files.items():
            if not self._pack.is_laid(path) or self._files.get(path, file) != file:
                left.append(path)
                continue
            if path not in self._files:
                (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
                (self._folder / path).hardlink_to(source / path)
            files[path] = file
            written += file.size
            told(written)
        self._note(wheel, files, left)

    def record(self) -> bytes:
        """The content of the record, once every wheel is laid down."""
        return msgspec.json.encode(Record(self._pack, self._wheels))

    def _note(self, wheel: Wheel, files: Mapping[str, LaidFile], left: Sequence[str]) -> None:
        self._files |= files
        self._wheels[wheel.sha256] = LaidWheel(files, tuple(left))


def damaged(laid: LaidWheel, folder: Path, told: Told = lambda _read: None, *, hashed: bool = True) -> Iterator[str]:
    """Paths of the files that are missing or are not as they were laid down. Raises what `told` raises.

    Without `hashed` only sizes are compared, which takes a moment where hashing takes as long as reading everything.
    """
    read = 0
    for path, file in laid.files.items():
        if not _is_whole(folder / path, file, hashed=hashed):
            yield path
        read += file.size
        told(read)


def _is_whole(path: Path, file: LaidFile, *, hashed: bool) -> bool:
    try:
        if path.is_symlink() or path.stat().st_size != file.size:
            return False
        if not hashed:
            return True
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def _members(wheel: Wheel, opened: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """The files of a wheel with their paths in site-packages. Raises UpdateError."""
    seen = set()
    for member in opened.infolist():
        if member.is_dir():
            continue
        path = PurePosixPath(member.filename)
        kind = stat.S_IFMT(member.external_attr >> 16)
        plain = str(path) == member.filename and not path.is_absolute() and not {"..", "."} & set(path.parts)
        # a ZIP file made on other systems states no kind; a backslash or a colon means something on Windows
        if not plain or kind not in (0, stat.S_IFREG) or not set("\\:").isdisjoint(member.filename):
            raise UpdateError(Text("packs.wheel_holds_something_else", file=wheel.file, name=member.filename))
        top, *below = path.parts
        if top.endswith(".data"):
            if not below[1:] or below[0] not in _INTO_SITE_PACKAGES:
                continue
            path = PurePosixPath(*below[1:])
        if str(path) in seen or str(path) == RECORD:
            raise UpdateError(Text("packs.wheel_holds_something_else", file=wheel.file, name=member.filename))
        seen.add(str(path))
        yield member, str(path)


def _extract(wheel: Wheel, opened: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path | None, most: int) -> LaidFile:
    """Write one file of at most `most` bytes; only read it if `place` is None.

    Raises UpdateError, OSError, and what zipfile raises.
    """
    mode = 0o755 if (member.external_attr >> 16) & 0o100 else 0o644
    digest, size = hashlib.sha256(), 0
    with opened.open(member) as source, _written(place, mode) as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > most:
                raise UpdateError(Text("packs.wheel_larger_than_stated", file=wheel.file))
            digest.update(chunk)
            file.write(chunk)
    return LaidFile(digest.hexdigest(), size)


def _written(place: Path | None, mode: int) -> IO[bytes]:
    if place is None:
        return Path(os.devnull).open("wb")
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")
