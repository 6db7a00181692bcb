"""Fetching a project's shard index and shards over HTTP, and verifying them by hash.

Shards are not parsed here (the worker does that), and file names never come from a project.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from skep.adapters.net.connections import INTERNET, Network
from skep.adapters.net.part_download import Download, receive
from skep.adapters.net.signed_checkpoints import fetch_note
from skep.adapters.net.web import Answer, Patience, Stop, Stopped, Throttle, TryAgain, Web
from skep.adapters.storage.shard_cache import PartFile, ShardCache, Wanted, free_bytes
from skep.core.errors import DataError, SkepError
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef, Layout, ShardIndex
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.project.shards import INDEX_BYTES_LIMIT, parse_index, shard_address
from skep.core.project.signed_checkpoint import file_of
from skep.core.session.messages import IndexArrived, IndexFailed, ShardArrived, ShardFailed, ShardProgress
from skep.core.text import Problem, Text
from skep.ports import Post

_THREADS: Final = 2
_CLOSE_SECONDS: Final = 0.5
_PUBLISHER: Final = Text("web.tell_project_publisher")

UNSIZED_LIMIT: Final = 64 * 1024 * 1024
"""Bytes in the largest file of unknown size: a tokenizer takes a few MB."""

log = logging.getLogger(__name__)


class HttpShards:
    """The engine's source of training data. Threads start with the first request."""

    def __init__(
        self,
        cache_folder: Path,
        notes_folder: Path,
        *,
        limit_bytes: Callable[[], int],
        keep_free_bytes: Callable[[], int],
        patience: Patience | None = None,
        free_space: Callable[[Path], int] = free_bytes,
        proxy: Callable[[], str] = lambda: "",
        network: Network = INTERNET,
        rate: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Notes of signed checkpoints are kept in `notes_folder`.

        `limit_bytes` and `keep_free_bytes` are as in ShardCache, `proxy` and `network` as in Web, `rate` as in Throttle.
        """
        self._cache = ShardCache(
            cache_folder, limit_bytes=limit_bytes, keep_free_bytes=keep_free_bytes, free_space=free_space
        )
        patience, throttle = patience or Patience(), Throttle(rate)

        def web(reach: Reach, stop: Stop) -> Web:
            return Web(patience, stop, reach, proxy, network, throttle=throttle)

        self._begin = partial(_Downloads, self._cache, notes_folder, web)
        self._downloads = self._begin("")

    def fetch_index(self, project: VerifiedProject, post: Post) -> None:
        """Posts IndexArrived or IndexFailed. Shards are asked for beside the index fetched last."""
        self._downloads.fetch_index(project, post)

    def fetch(self, shard: Wanted, reach: Reach, post: Post) -> None:
        """Posts ShardProgress now and then, at last ShardArrived or ShardFailed. Requests for one shard share it.

        `reach` is that of the shard's project.
        """
        self._downloads.fetch(shard, reach, post)

    def stop(self) -> None:
        """Ends all downloads; partial files stay. Nothing is posted for them afterwards. Returns immediately."""
        ended = self._downloads
        self._downloads = self._begin(ended.index_address)
        ended.end()
        self._cache.release()

    def close(self) -> None:
        """Stops downloads within a second; partial files stay. Nothing is posted afterwards."""
        self._downloads.end()
        self._downloads.wait(_CLOSE_SECONDS)


class _Downloads:
    """Those that end together, in threads of their own: one that waits for a server would delay what is asked for later."""

    def __init__(
        self, cache: ShardCache, notes_folder: Path, web: Callable[[Reach, Stop], Web], index_address: str
    ) -> None:
        """`index_address` is that of the index fetched last, or ""."""
        self._cache, self._notes_folder = cache, notes_folder
        self._stop = Stop()
        self._webs = {reach: web(reach, self._stop) for reach in Reach}
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Post]] = {}
        self.index_address = index_address

    def fetch_index(self, project: VerifiedProject, post: Post) -> None:
        def job() -> None:
            manifest, web = project.manifest, self._webs[project.reach]
            index = self._fetch_index(web, manifest.data.index, manifest.data.sha256, manifest.recipe.layout)
            arrived = IndexArrived(self._with_files(index, manifest, web))
            self._stop.check()
            post(arrived)

        self._enqueue(lambda: self._report(job, lambda problem: post(IndexFailed(problem))))

    def fetch(self, shard: Wanted, reach: Reach, post: Post) -> None:
        with self._lock:
            if waiting := self._waiting.get(shard.sha256):
                waiting.append(post)
                return
            self._waiting[shard.sha256] = [post]
        web = self._webs[reach]
        self._enqueue(lambda: self._report(lambda: self._fetch(web, shard), lambda problem: self._fail(shard, problem)))

    def end(self) -> None:
        self._stop.set()
        for _ in self._threads:
            self._jobs.put(None)

    def wait(self, seconds: float) -> None:
        """For the end of the threads, at most so long."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            # one that still waits for a connection is left behind: it is a daemon and writes nothing any more
            thread.join(max(0.0, deadline - time.monotonic()))

    # --- threads

    def _enqueue(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)
        if len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._run, name=f"shards-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self) -> None:
        while job := self._jobs.get():
            try:
                self._stop.check()
                job()
            except Stopped:
                return

    def _report(self, job: Callable[[], None], fail: Callable[[Problem], None]) -> None:
        try:
            job()
        except Stopped:
            raise
        except SkepError as error:
            self._stop.check()
            fail(error.problem)
        except Exception:
            log.exception("a download failed in an unforeseen way")
            self._stop.check()
            # the caller waits for an answer, so every error is posted
            fail(Problem(Text("shard.training_data_could_not_fetched"), Text("shard.log_says_more_try_again")))

    # --- small files, held in memory until their hash is known

    def _fetch_index(self, web: Web, address: str, sha256: str, layout: Layout) -> ShardIndex:
        raw = _small_file(web, Text("shard.project_shard_index"), address, sha256, INDEX_BYTES_LIMIT)
        index = parse_index(raw, layout)
        self.index_address = address
        return index

    def _with_files(self, index: ShardIndex, manifest: Manifest, web: Web) -> ShardIndex:
        files = manifest.recipe.files
        if not manifest.begins_signed:
            return replace(index, files=files)
        note = fetch_note(manifest, web, self._notes_folder)
        return replace(index, files=(*files, file_of(note, manifest)), checkpoint=note.text)

    def _fetch_unsized(self, web: Web, file: FileRef) -> Path:
        """A file of unknown size; it is small, and is kept whole or not at all."""
        kept = self._cache.find_any_size(file)
        if kept:
            return kept
        raw = _small_file(web, Text("shard.project", name=file.name), file.address, file.sha256, UNSIZED_LIMIT)
        sized = replace(file, bytes=len(raw))
        with self._cache.room(sized):
            with PartFile(self._cache.part(sized), sized.bytes) as part:
                part.restart()
                part.write(raw)
            return self._cache.keep(sized)

    # --- shards, and other files of a known size

    def _fetch(self, web: Web, shard: Wanted) -> None:
        if isinstance(shard, FileRef):
            self._cache.pin(shard.sha256)
        if shard.bytes:
            path = self._cache.find(shard) or self._download(web, shard)
        else:
            assert isinstance(shard, FileRef)
            path = self._fetch_unsized(web, shard)
        self._stop.check()
        for post in self._done(shard):
            post(ShardArrived(shard.sha256, str(path)))

    def _fail(self, shard: Wanted, problem: Problem) -> None:
        for post in self._done(shard):
            post(ShardFailed(shard.sha256, problem))

    def _done(self, shard: Wanted) -> list[Post]:
        with self._lock:
            return self._waiting.pop(shard.sha256)

    def _download(self, web: Web, shard: Wanted) -> Path:
        address = self._address(shard)
        with self._cache.room(shard):
            web.persist(lambda: self._attempt(web, shard, address))
            self._stop.check()
            return self._cache.keep(shard)

    def _address(self, shard: Wanted) -> str:
        if isinstance(shard, FileRef):
            return shard.address
        if not self.index_address:
            raise DataError(Text("shard.training_data_was_asked_before"), Text("shard.join_project_again"))
        return shard_address(self.index_address, shard.sha256)

    def _attempt(self, web: Web, shard: Wanted, address: str) -> None:
        """One attempt to complete and verify the part file. Raises DataError, TryAgain, StorageError, Stopped."""
        with PartFile(self._cache.part(shard), shard.bytes) as file:
            resumed = file.have > 0
            if file.have < shard.bytes:
                what = Text("shard.named_name", named=_named(shard))
                told = partial(self._say_progress, shard)
                download = Download(address, what, shard.bytes, partial(_wrong_size, shard), told)
                resumed = receive(web, download, file)
            if file.sha256 == shard.sha256:
                return
        self._stop.check()  # another download of it may have begun
        self._cache.throw_away(shard)
        # the earlier part of the file may be wrong: download it again
        kind = TryAgain if resumed else DataError
        raise kind(Text("shard.named_wrong_hash_deleted", named=_named(shard)), _PUBLISHER)

    def _say_progress(self, shard: Wanted, have: int) -> None:
        with self._lock:
            waiting = tuple(self._waiting[shard.sha256])
        for post in waiting:
            post(ShardProgress(shard.sha256, have, shard.bytes))


def _small_file(web: Web, what: Text, address: str, sha256: str, limit: int) -> bytes:
    raw = web.persist(lambda: web.read(address, Text("shard.named_what", what=what), limit))
    if len(raw) > limit:
        raise DataError(Text("shard.larger_than_kib", what=what, limit=limit // 1024), _PUBLISHER)
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise DataError(Text("shard.what_wrong_hash_deleted", what=what), _PUBLISHER)
    return raw


def _named(shard: Wanted) -> Text:
    return (
        Text("shard.project", name=shard.name)
        if isinstance(shard, FileRef)
        else Text("shard.shard", sha256=shard.sha256[:12])
    )


def _wrong_size(shard: Wanted, answer: Answer) -> DataError:
    return DataError(
        Text("shard.data_server_has_not_bytes", named=_named(shard), host=answer.host, bytes=shard.bytes),
        _PUBLISHER,
    )
