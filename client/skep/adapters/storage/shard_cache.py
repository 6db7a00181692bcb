"""The folder of downloaded shards: finding and verifying them, and making room for the next one.

Files are named by their hash; an unfinished download ends in `.part`. Other files in the folder are not touched.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from skep.adapters.storage.files import os_errors
from skep.core.errors import StorageError
from skep.core.project.data import FileRef, ShardRef
from skep.core.project.shards import shard_name
from skep.core.text import Text

KEPT_FOR_THE_WORKER: Final = 3
"""The shards returned last are never evicted: one being read, one read ahead, one held out."""

_OURS: Final = re.compile(r"([0-9a-f]{64})\.safetensors(\.part)?")
_CHUNK: Final = 1024 * 1024
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


Wanted = ShardRef | FileRef


def free_bytes(folder: Path) -> int:
    """Bytes free for this user on the disk that holds `folder`."""
    return shutil.disk_usage(folder).free


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Convert the file system's errors about `folder` to StorageError."""
    with os_errors(
        Text("shard_cache.training_data_cannot_stored", folder=str(folder)),
        Text("shard_cache.check_folder_exists_you_may"),
    ):
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise StorageError(
                Text("shard_cache.disk_full_training_data_cannot", folder=str(folder)),
                Text("shard_cache.free_some_space_disk_what"),
            ) from None


class PartFile:
    """An unfinished download. Existing content is hashed on opening, new content while it is written.

    `errors` converts the file system's errors about a folder.
    """

    def __init__(
        self, path: Path, size: int, errors: Callable[[Path], AbstractContextManager[None]] = disk_errors
    ) -> None:
        self._path = path
        self._size = size
        self._errors = errors
        self.have = 0

    def __enter__(self) -> Self:
        with self._errors(self._path.parent):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            # unbuffered, so that "disk full" is raised by the write that causes it
            self._file = os.fdopen(descriptor, "r+b", buffering=0)
            self._hash_what_is_there()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _hash_what_is_there(self) -> None:
        self._digest = hashlib.sha256()
        self.have = 0
        while self.have <= self._size and (chunk := self._file.read(_CHUNK)):
            self._digest.update(chunk)
            self.have += len(chunk)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def restart(self) -> None:
        """Discard the existing content."""
        with self._errors(self._path.parent):
            self._file.seek(0)
            self._file.truncate()
        self._digest = hashlib.sha256()
        self.have = 0

    def write(self, chunk: bytes) -> None:
        """Append. The caller has checked the size. Raises StorageError, for example if the disk is full."""
        rest = memoryview(chunk)
        with self._errors(self._path.parent):
            while rest:
                written = self._file.write(rest)
                self._digest.update(rest[:written])
                self.have += written
                rest = rest[written:]


@dataclass(frozen=True)
class _Entry:
    path: Path
    sha256: str
    size: int
    used_at: float


class ShardCache:
    """Verified shards by hash, within a size limit. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: Callable[[], int],
        keep_free_bytes: Callable[[], int],
        free_space: Callable[[Path], int] = free_bytes,
    ) -> None:
        """`limit_bytes` returns the most bytes in `folder`, `keep_free_bytes` the bytes its disk must keep free.

        Both are called before each download, since the user may change them while skep runs.
        """
        self._folder = folder
        self._limit = limit_bytes
        self._keep_free = keep_free_bytes
        self._free_space = free_space
        self._lock = threading.Lock()
        self._verified: set[str] = set()
        self._expected: list[Wanted] = []
        self._handed_out: list[str] = []
        self._pinned: set[str] = set()

    def find(self, shard: Wanted) -> Path | None:
        """The path of the complete, verified file, or None; a damaged or unreadable file is deleted.

        A file is hashed at its first use only.
        """
        path = self._folder / shard_name(shard.sha256)
        with disk_errors(self._folder):
            with self._lock:
                if not path.is_file() or path.is_symlink():
                    return None
                # under the lock, so that no other download evicts it while it is hashed
                self._keep_for_the_worker(shard)
            if path.stat().st_size == shard.bytes and self._is_verified(path, shard.sha256):
                with contextlib.suppress(OSError):  # a disk that is read-only
                    os.utime(path)
                return path
            path.unlink()
        return None

    def find_any_size(self, file: FileRef) -> Path | None:
        """As `find`, for a file of unknown size: only the hash is checked."""
        path = self._folder / shard_name(file.sha256)
        with disk_errors(self._folder):
            size = path.stat().st_size if path.is_file() else 0
        return self.find(replace(file, bytes=size)) if size else None

    def pin(self, sha256: str) -> None:
        """Never evict this file: a project needs it at every start."""
        with self._lock:
            self._pinned.add(sha256)

    def release(self) -> None:
        """No file is in use any more: each may be evicted, until it is found, kept or pinned again."""
        with self._lock:
            self._pinned.clear()
            self._handed_out.clear()

    def part(self, shard: Wanted) -> Path:
        return self._folder / (shard_name(shard.sha256) + ".part")

    @contextlib.contextmanager
    def room(self, shard: Wanted) -> Iterator[None]:
        """A context that reserves space for the download of this shard. Raises StorageError."""
        with self._lock, disk_errors(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._evict(self._victims(shard))
            self._expected.append(shard)
        try:
            yield
        finally:
            with self._lock, disk_errors(self._folder):
                self._expected.remove(shard)
                # a download that was stopped may end when the next one of this shard has begun
                if shard not in self._expected:
                    self._drop_if_empty(self.part(shard))

    def keep(self, shard: Wanted) -> Path:
        """Rename the complete and verified part file to the shard; returns its path."""
        path = self._folder / shard_name(shard.sha256)
        with self._lock, disk_errors(self._folder):
            self.part(shard).replace(path)
            self._verified.add(shard.sha256)
            self._keep_for_the_worker(shard)
        return path

    def throw_away(self, shard: Wanted) -> None:
        with disk_errors(self._folder):
            self.part(shard).unlink(missing_ok=True)

    @staticmethod
    def _drop_if_empty(part: Path) -> None:
        if part.is_file() and part.stat().st_size == 0:
            part.unlink()

    def _keep_for_the_worker(self, shard: Wanted) -> None:
        others = [sha256 for sha256 in self._handed_out if sha256 != shard.sha256]
        self._handed_out = [*others, shard.sha256][-KEPT_FOR_THE_WORKER:]

    def _is_verified(self, path: Path, sha256: str) -> bool:
        with self._lock:
            if sha256 in self._verified:
                return True
        try:
            with path.open("rb") as file:
                right = hashlib.file_digest(file, "sha256").hexdigest() == sha256
        except PermissionError:
            return False
        if right:
            with self._lock:
                self._verified.add(sha256)
        return right

    def _entries(self) -> list[_Entry]:
        entries = []
        for item in os.scandir(self._folder):
            match = _OURS.fullmatch(item.name)
            if match and item.is_file(follow_symlinks=False):
                facts = item.stat(follow_symlinks=False)
                entries.append(_Entry(Path(item.path), match[1], facts.st_size, facts.st_mtime))
        return sorted(entries, key=lambda entry: entry.used_at)

    def _victims(self, shard: Wanted) -> list[_Entry]:
        """The files to evict for this shard, least recently used first. Raises StorageError if that is not enough."""
        expected = {each.sha256: each.bytes for each in (*self._expected, shard)}
        entries = self._entries()
        wanted = {*expected, *self._handed_out, *self._pinned}
        stays = [entry for entry in entries if entry.sha256 in wanted]
        others = [entry for entry in entries if entry not in stays]
        present = sum(entry.size for entry in stays if entry.sha256 in expected)
        to_come = max(0, sum(expected.values()) - present)
        needed = to_come + sum(entry.size for entry in stays)
        limit, keep_free = self._limit(), self._keep_free()
        if needed > limit:
            raise _limit_too_small(needed, limit)
        free = self._free_space(self._folder)
        missing = max(
            needed + sum(entry.size for entry in others) - limit,
            to_come + keep_free - free,
        )
        victims = []
        for entry in others:
            if missing <= 0:
                break
            victims.append(entry)
            missing -= entry.size
        if missing > 0:
            raise _disk_too_full(to_come, free, keep_free)
        return victims

    def _evict(self, victims: list[_Entry]) -> None:
        for entry in victims:
            entry.path.unlink(missing_ok=True)
            self._verified.discard(entry.sha256)


def _limit_too_small(needed: int, limit: int) -> StorageError:
    return StorageError(
        Text("shard_cache.training_data_use_needs_more", needed=needed, limit=limit),
        Text("shard_cache.raise_setting", setting="disk.cache_gb"),
        remedy="setting:disk.cache_gb",
    )


def _disk_too_full(to_come: int, free: int, keep_free: int) -> StorageError:
    return StorageError(
        Text("shard_cache.disk_has_free_training_data", free=free, to_come=to_come, keep_free=keep_free),
        Text("shard_cache.free_some_space_disk_lower", setting="disk.keep_free_gb"),
        remedy="setting:disk.keep_free_gb",
    )
